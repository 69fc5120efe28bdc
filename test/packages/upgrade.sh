#!/bin/bash
# upgrade.sh BUILD PACKAGES NEWER STAGE: upgrades under programs that hold and make objects, with systemd as process 1 and the
# sidecar: version 0.1, staged in STAGE, to the PACKAGES; those, with the guard, to NEWER, the same as a next version; then
# removal; and what docs/packages.md tells a new administrator to do. Runs as root in the guest with --systemd, where what the packages depend on is installed.
set -u
until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/../integration/guest.sh" "$1"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
# shellcheck source=test/integration/page.sh
. "$here/page.sh"
# shellcheck source=test/integration/running.sh
. "$here/running.sh"
packages=$2 newer=$3 stage=$4
objects=$programs/verbs_objects
limit=10
# An image of a machine may forbid packages to start services.
rm -f /usr/sbin/policy-rc.d
# The emulator needs minutes for an index of all manual pages.
rm -f /var/lib/man-db/auto-update
kept=(rdmaquotad rdmaquota librdmaquota-provider)

install() { dpkg --force-confold -i "$1"/librdmaquota-provider_*.deb "$1"/rdmaquota_*.deb "$1"/rdmaquotad_*.deb > dpkg.log 2>&1; }
# Programs on rxe0 want what there is room for, and none may be denied it. Those on rxe1 want more, and must not get it.
ip link add dummy1 type dummy && ip link set dummy1 up && rdma link add rxe1 type rxe netdev dummy1

# The kernel's own count of user programs' QPs on rxe0, or DEVICE.
qps() { rdma resource show qp | grep -F " ${1:-rxe0}/" | grep -c ' pid '; }
# sample: from now on, the highest counts that are seen
sample() {
    rm -f sampled.* calm
    (
        without_inputs
        declare -A highest=([rxe0]=0 [rxe1]=0)
        until [ -e calm ]; do
            for name in rxe0 rxe1; do
                now=$(qps $name)
                [ "$now" -le "${highest[$name]}" ] || { highest[$name]=$now; echo "$now" > sampled.$name; }
            done
            sleep 0.05
        done
    ) &
    sampler=$!
}
# held_to LIMIT LIMIT1 WHAT: ends it; at most LIMIT were seen on rxe0, and some, and just LIMIT1 on rxe1
held_to() {
    local highest highest1
    touch calm
    wait "$sampler"
    read -r highest < sampled.rxe0
    read -r highest1 < sampled.rxe1
    [ "$highest" -le "$1" ] && [ "$highest" -gt 4 ]
    is "$3: at most $1 QPs at any time" "$? of $highest" "0 of $highest"
    is "$3: where more are wanted, there are $2" "$highest1" "$2"
}
denials() { rdmaquota events | grep -w denied | grep -c -w rxe0; }  # version 0.1 knows no --kind
finished() { close_input "$1"; wait "${pids[$1]}" || not_ok "$1 ends as it should" "$?: $(cat "out.$1")"; }
# gets NAME N: a new program asks for nine QPs
gets() {
    launch "$1" "$objects" rc=9 wait
    has "a new program gets exactly what is left" "$(cat "out.$1")" "rc: $2 of 9, then EDQUOT"
}
alive() { kill -0 "${pids[$1]}" 2> /dev/null && echo alive; }
running_sidecar() { readlink "/proc/$(systemctl show --value -p MainPID rdmaquotad)/exe"; }

# --- version 0.1 to the packages ---------------------------------------------------------------------
version_0_1() {
    cp -a --remove-destination "$stage/." / && rm -f /complete && ldconfig && systemctl daemon-reload
    printf 'version = 1\n[tenant.default."*"]\nqp = 8\n' > /etc/rdmaquota/rdmaquota.toml
    systemctl enable --now rdmaquota rdmaquotad > units.log 2>&1 || not_ok "the units of version 0.1" "$(cat units.log)"
}
version_0_1
rdmaquota set rxe0 qp=$limit > /dev/null
launch four "$objects" rc=4 wait rc=3 wait rc=3 wait
launch churn1 "$programs/churn" -d rxe0 2
launch churn2 "$programs/churn" -d rxe0 2
for greedy in greedy1 greedy2; do launch $greedy "$programs/churn" -d rxe1 8; done
denied=$(denials)
sample
succeeds "the packages are installed over version 0.1" install "$packages"
launch churn3 "$programs/churn" -d rxe0 2
launch greedy3 "$programs/churn" -d rxe1 8
sleep 3
for churn in churn1 churn2 churn3 greedy1 greedy2 greedy3; do finished $churn; done
held_to $limit 8 "over old and new programs"
is "nobody is denied where there is room" "$(denials)" "$denied"
is "or refused" "$(tail -qn 1 out.churn? | grep -v ' made, 0 refused$')" ""
is "the sidecar is the new one" "$(running_sidecar)" /usr/sbin/rdmaquotad
is "and works" "$(state) $(systemctl is-active rdmaquotad)" "off active"
[ "$(systemctl show --value -p NRestarts rdmaquotad)" = 0 ] || journalctl -q --no-pager -u rdmaquotad | tail -n 10 | sed 's/^/    # /'
has "doctor says that it runs, and will" "$(rdmaquota doctor)" "sidecar: it runs, and will after the next boot"
has "what was set stays" "$(rdmaquota show default --json)" "\"qp\":{\"usage\":4,\"limit\":$limit"
gets new 6
is "which is told" "$(($(denials) > denied))" 1
rdmaquota set rxe0 qp=12 > /dev/null
go_on four
until_step four 2
has "an old program gets what is set since" "$(cat out.four)" "rc: 2 of 3, then EDQUOT"
rdmaquota reload > /dev/null
end new
go_on four
until_step four 3
has "it sees the policy that is put in force since, too" "$(tail -n 2 out.four)" "rc: 2 of 3, then EDQUOT"
is "and has eight" "$(usage_of qp)" 8
limit=18

# --- to a newer version, with the guard ------------------------------------------------------------
printf 'version = 1\n[sidecar]\nguard = "deny"\n[tenant.default."*"]\nqp = %d\n' $limit > /etc/rdmaquota/rdmaquota.toml
rdmaquota reload > /dev/null
guard_is deny
is "what version 0.1's program holds counts" "$(counted default qp)" 8
launch library "$objects" rc=2 wait rc=1 wait
launch raw "$programs/verbs_objects_static" rc=2 wait rc=1 wait
launch churn4 "$programs/churn" -d rxe0 2
launch churn5 "$programs/churn" -d rxe0 2
for greedy in greedy4 greedy5; do launch $greedy "$programs/churn" -d rxe1 $limit; done
denied=$(denials)
sample
succeeds "a newer version is installed over them" install "$newer"
launch churn6 "$programs/churn" -d rxe0 2
guard_is deny
sleep 3
pinned() { find /sys/fs/bpf/rdmaquota -mindepth 1 -maxdepth 1 | wc -l; }
is "one guard is in the kernel" "$(pinned)" 1
succeeds "and this version over the newer one" install "$packages"
guard_is deny
sleep 3
is "one guard is in the kernel then, too" "$(pinned)" 1
for churn in churn4 churn5 churn6 greedy4 greedy5; do finished $churn; done
held_to $limit $limit "with the guard"
is "nobody is denied where there is room" "$(denials) $(counted default qp refused)" "$denied 0"
is "or refused" "$(tail -qn 1 out.churn? | grep -v ' made, 0 refused$')" ""
is "nobody died" "$(alive four) $(alive library) $(alive raw)" "alive alive alive"
launch static "$programs/verbs_objects_static" rc=9 wait
has "a static program gets what is left, by the kernel's count" "$(cat out.static)" "rc: 6 of 9, then"
is "which is the limit" "$(qps)" $limit
end static
end four
for _ in $(seq 100); do [ "$(usage_of qp)" != 2 ] || break; sleep 0.1; done
is "what version 0.1's program held is back at its end" "$(usage_of qp)" 2

# --- removal -------------------------------------------------------------------------------------------
launch churn7 "$programs/churn" -d rxe0 2
succeeds "the packages are removed" dpkg -r "${kept[@]}"
is "the guard is out of the kernel" "$(ls -d /sys/fs/bpf/rdmaquota 2> /dev/null)" ""
launch free "$programs/verbs_objects_static" rc=30 wait
has "which refuses nothing any more" "$(cat out.free)" "rc: 30 of 30"
end free
for name in library raw; do go_on $name; until_step $name 2; done
is "programs go on" "$(cat out.library out.raw | grep -c 'rc: 1 of 1')" 2
end raw
kill -9 "${pids[library]}"  # whose part the limit has again below
wait "${pids[library]}" 2> /dev/null
finished churn7
mkdir -p /var/log/rdmaquota && touch /var/log/rdmaquota/events.json
succeeds "and purged" dpkg -P "${kept[@]}"
is "which leaves nothing" "$(ls -d /run/rdmaquota /etc/rdmaquota /var/log/rdmaquota /sys/fs/bpf/rdmaquota \
    /etc/systemd/system/*/rdmaquota*.service 2> /dev/null)" ""

# --- as docs/packages.md has it, where nothing was ------------------------------------------------------
# as_page COMMANDS: apt asks nothing
as_page() { (cd "$packages" && DEBIAN_FRONTEND=noninteractive bash -e -c "apt() { command apt -y \"\$@\"; }; $1"); }
unlimited=$("$objects" rc=12 2>&1)
succeeds "the page's commands install the packages, and doctor finds nothing wrong" \
    as_page "$(block packages.md 'In the directory with the packages')"
is "the units are enabled and started" "$(systemctl is-enabled rdmaquota rdmaquotad; systemctl is-active rdmaquota rdmaquotad)" \
    "$(printf '%s\n' enabled enabled active active)"
is "programs run as before, without a message" "$("$objects" rc=12 2>&1)" "$unlimited"
printf 'version = 1\n[tenant.default."*"]\nqp = 8\n' > /etc/rdmaquota/rdmaquota.toml
rdmaquota reload > /dev/null
has "until the policy has limits" "$("$objects" rc=12 2>&1)" "rc: 8 of 12, then EDQUOT"
remove=$(quoted packages.md '\*\*Remove\*\* (')
remove=${remove/ rdmaquota-slurm/}
succeeds "the page's command removes them" as_page "$remove"
is "and programs run as before" "$("$objects" rc=12 2>&1)" "$unlimited"
succeeds "the same with purge" as_page "${remove/remove/purge}"
is "leaves nothing" "$(ls -d /run/rdmaquota /etc/rdmaquota /var/log/rdmaquota 2> /dev/null)" ""

# --- version 0.1 to the packages, as docs/packages.md has it ----------------------------------------------
version_0_1
launch older "$objects" rc=4 wait rc=4 wait
cp -a /etc/rdmaquota own
uninstall=$(block install.md 'with it every' | grep -v -e umount -e 'guard off' | sed 's|\(rm -rf /etc/rdmaquota\) /run/rdmaquota|\1|')
succeeds "version 0.1 is uninstalled under a program" bash -e -c "ninja() { (cd $stage && find . ! -type d) | (cd / && xargs rm -f); }
$uninstall"
is "and nothing of it is left" "$(cd "$stage" && find . ! -type d | while read -r file; do ls "/$file" 2> /dev/null; done)" ""
is "programs that start then are not limited" "$("$objects" rc=12 2>&1)" "$unlimited"
succeeds "the packages are installed as the page has it" as_page "$(block packages.md 'In the directory with the packages')"
cp -a own/. /etc/rdmaquota
rdmaquota reload > /dev/null
gets last 4
end last
go_on older
until_step older 2
has "the older program has the other half" "$(cat out.older)" "rc: 4 of 4"
is "which the books know" "$(usage_of qp)" 8
end older
finish
