#!/bin/bash
# systemd_test.sh BUILD: the units under a real systemd, with all that they forbid: what rdmaquotad is for, it can do
# there, and systemd looks after it; uninstalling leaves nothing behind. Installs by Meson itself. Runs as root in the
# guest with --systemd.
set -u
until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done

# installed_files: all where an installation puts any, and where systemd notes what is enabled
installed_files() {
    find /etc /usr/local /usr/lib/systemd /usr/lib/tmpfiles.d /usr/lib/*/libibverbs /run/rdmaquota ! -name ld.so.cache \
        2> /dev/null | LC_ALL=C sort
}
groupadd many
useradd --no-create-home late
files_before=$(installed_files)
meson install -C "$1" --no-rebuild --quiet || exit 1
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
make_group
# A node without the package procps.
rm -f /bin/kill

shown() { systemctl show --value -p "$1" rdmaquotad; }
# until_is PROPERTY VALUE
until_is() { eventually "$1 of rdmaquotad is $2" prints "$2" shown "$1"; }
# journal [OPTION...]: what rdmaquotad has told, one line each, in sidecar.log
journal() { journalctl -q --no-pager -o cat -u rdmaquotad "$@" > sidecar.log; }
await_journal() { eventually "the journal has '$1'" journal_has "$1"; }
journal_has() {
    journal
    contains sidecar.log "$1"
}

cat > /etc/rdmaquota/rdmaquota.toml << 'END'
version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_object = 40
[sidecar]
metrics_port = 9555
END
# limit_of RESOURCE: that holds for the tenant on rxe0, as a program is told
limit_of() { "$programs/verbs_objects" "$1=100" 2>&1 | sed -n 's/^rdmaquota: .* uses [0-9]* of \([0-9]*\), .*/\1/p' | head -n 1; }
systemctl daemon-reload
succeeds "the policy's unit puts it in force" systemctl enable --now rdmaquota
is "so that limits hold" "$(limit_of ah)" 40
succeeds "the sidecar's unit is ready when it sees the kernel" systemctl enable --now rdmaquotad
journal
has "which is in the journal" "$(cat sidecar.log)" "sees what the kernel makes"
has "and its state in the status" "$(shown StatusText)" "0 dynamic rules"
is "it has the powers of the unit and no other" \
    "$(sed -n 's/^CapEff:\t//p' "/proc/$(shown MainPID)/status")" 00000000002c0022

start in_group "$programs/raw_uverbs" ioctl 5
await_journal "bypass: pid $program "
bound_is "the backstop is set through the unit's view of cgroups" "rxe0 hca_handle=max hca_object=40"
has "a bypass is a warning in the journal" "$(journal -p warning; cat sidecar.log)" "bypass: pid $program "
has "Prometheus finds its figures" \
    "$(/usr/bin/python3 -c 'import urllib.request as u
print(u.urlopen("http://127.0.0.1:9555/metrics").read().decode())')" \
    'rdmaquota_sidecar_events_total{kind="bypass"} 1'
proceed
await_journal "bypass_ended: pid $program "

sed -i 's/hca_object = 40/hca_object = 41/' /etc/rdmaquota/rdmaquota.toml
succeeds "reload, when the policy has changed" systemctl reload rdmaquotad
eventually "the limit is 41" prints 41 limit_of ah
is "puts it in force" "$(limit_of ah)" 41

# --- tenants -----------------------------------------------------------------------------------------
cat >> /etc/rdmaquota/rdmaquota.toml << 'END'
[tenant.job]
match = [{ unit = "rdma-job-*.service", members = ["*"] }]
[tenant.job."*"]
qp = 5
[tenant."user/{user}"]
match = [{ group = "many" }]
[tenant."user/{user}"."*"]
qp = 6
END
succeeds "the policy's unit puts tenants in force" systemctl reload rdmaquota
# Waiting for a unit takes D-Bus, which not every node has.
systemd-run --quiet --unit rdma-job-1 --property="StandardOutput=file:$work/job" \
    --property="StandardError=file:$work/job.err" "$programs/verbs_objects" rc=9
eventually "the unit's program has ended" contains job rc:
has "a program of a unit is held to its tenant's limit" "$(cat job.err)" "tenant job uses 5 of 5"
systemd-run --quiet --unit rdma-job-2 sleep infinity
has "which names the unit" "$(rdmaquota which --pid "$(systemctl show --value -p MainPID rdma-job-2)")" \
    "tenant job: match 1 of tenant job, unit rdma-job-*.service"
systemctl stop rdma-job-2
usermod -a -G many late
out=$(setpriv --reuid=late --regid=late --init-groups "$programs/verbs_objects" rc=9 2>&1)
has "the sidecar's unit lets it make a user's tenant on request" "$out" "tenant user/late uses 6 of 6"
succeeds "whose ledger is that user's" setpriv --reuid=late --clear-groups test -w /run/rdmaquota/tenants/user+*/here/ledgers/5/ledger
mounted=$(findmnt --noheadings --output TARGET --list)
has "each tenant of the policy has a file system of its own" "$mounted" /run/rdmaquota/tenants/job/here/ledgers
has "and each that the sidecar makes" "$mounted" "/run/rdmaquota/tenants/user+#$(id -u late)/here/ledgers"

# --- the page -----------------------------------------------------------------------------------------
sed -i 's/^metrics_port = 9555/&\nweb_port = 9556/' /etc/rdmaquota/rdmaquota.toml
succeeds "the policy asks for a page" systemctl reload rdmaquotad
eventually "which is served" rdmaquota web
address=$(rdmaquota web)
is "systemd keeps its socket" "$(shown NFileDescriptorStore)" 2
succeeds "the sidecar restarts" systemctl restart rdmaquotad
is "and its address is as before" "$(rdmaquota web)" "$address"
has "at which the page is" "$(/usr/bin/python3 -c 'import sys, urllib.request as u
print(u.urlopen(sys.argv[1]).read().decode())' "$address")" "<title>rdmaquota</title>"
systemctl stop rdmaquotad
systemctl start rdmaquotad
eventually "which starts again" rdmaquota web
lacks "not after a stop, when anybody could have got the port" "$(rdmaquota web)" "$address"

# --- the guard ----------------------------------------------------------------------------------------
sed -i -e 's/^metrics_port = 9555/&\nguard = "deny"/' -e 's/^hca_object = 41/&\npd = 5/' /etc/rdmaquota/rdmaquota.toml
succeeds "the policy turns the guard on" systemctl reload rdmaquota
guard_is deny
has "which refuses" "$("$programs/raw_uverbs" ioctl 10 < /dev/null)" "pd: 5 of 10 EDQUOT"
until_is WatchdogUSec 20s
is "the watchdog, which waited for that, is as before" "$(shown WatchdogUSec)" 20s
succeeds "the sidecar is stopped" systemctl stop rdmaquotad
is "and the kernel keeps the guard" "$(state)" kept
has "which goes on" "$("$programs/raw_uverbs" ioctl 10 < /dev/null)" "pd: 5 of 10 EDQUOT"
succeeds "another one starts" systemctl start rdmaquotad
guard_is deny
is "and replaces it" "$(find /sys/fs/bpf/rdmaquota -mindepth 1 -maxdepth 1 | wc -l)" 1
# As one whose policy could not be put in force at boot, and was later, by hand.
systemctl stop rdmaquota
rdmaquota set rxe0 cq=77 > /dev/null
succeeds "a sidecar that is restarted leaves the policy's unit as it is" systemctl restart rdmaquotad
is "which stays stopped" "$(systemctl is-active rdmaquota)" inactive
has "and what was set stays" "$(rdmaquota show --limits)" 77
rdmaquota unset rxe0 cq > /dev/null
systemctl start rdmaquota
guard_is deny
has "its memory is bounded" "$(awk -v most=$((200 << 20)) '$1 < most { print "yes" }' "/sys/fs/cgroup/system.slice/rdmaquotad.service/memory.current")" yes
is "it comes before what starts jobs" "$(shown Before | tr ' ' '\n' | grep -c -e slurmd -e kubelet -e containerd)" 3

killed=$(shown MainPID)
kill -9 "$killed"
until_is NRestarts 1
until_is ActiveState active
restarted=$(shown MainPID)
is "after a kill -9 there is another" "$(cat "/proc/$restarted/comm") $((restarted == killed))" "rdmaquotad 0"
kill -STOP "$(shown MainPID)"
until_is NRestarts 2
until_is ActiveState active
is "one that is stuck is replaced" "$(journalctl -q -o cat | grep -c 'rdmaquotad.service: Watchdog timeout')" 1
is "once, however long the other takes to start" "$(shown NRestarts)" 2

# --- events in the journal -------------------------------------------------------------------------
"$programs/verbs_objects" ah=100 > /dev/null 2>&1
last_denial() {
    journalctl -q -o cat --output-fields=RDMAQUOTA_TENANT,RDMAQUOTA_DEVICE,RDMAQUOTA_RESOURCE RDMAQUOTA_KIND=denied |
        tail -n 3 | sort | xargs
}
eventually "the denial is in the journal" prints "default hca_object rxe0" last_denial
is "a denial is in systemd's journal, by fields" "$(last_denial)" "default hca_object rxe0"
rdmaquota repair --new > /dev/null
is "a new ledger does not have it" "$(rdmaquota events --kind denied --tenant default | wc -l)" 0
has "events --since reads it there" "$(rdmaquota events --since 1h --kind denied --tenant default)" \
    "default      root     rxe0 hca_object  41 of 41 used"
has "and the sidecar's own from before it was killed" "$(rdmaquota events --since 1h --kind bypass)" "pd: 5 in the kernel"

succeeds "it stops when it is told" systemctl stop rdmaquotad
is "in order" "$(shown Result) $(shown ActiveState)" "success inactive"

# --- uninstalling, as docs/install.md says ---------------------------------------------------------
succeeds "both units are enabled" systemctl is-enabled rdmaquota rdmaquotad
succeeds "the units are stopped and disabled" systemctl disable --now rdmaquotad rdmaquota
succeeds "the guard is taken out" rdmaquota guard off
is "as a whole" "$(find /sys/fs/bpf/rdmaquota -mindepth 1 2> /dev/null)" ""
succeeds "what Meson installed is removed" ninja -C "$1" uninstall
ldconfig
umount -ql /dev/infiniband/rdmaquota /run/rdmaquota/tenants/*/here/ledgers /run/rdmaquota
succeeds "policy and ledgers are removed" rm -r /etc/rdmaquota /run/rdmaquota
systemctl daemon-reload
is "nothing is left" "$(diff <(echo "$files_before") <(installed_files))" ""
has "nor does systemd know the units" "$(systemctl status rdmaquota rdmaquotad 2>&1)" "Unit rdmaquota.service could not be found."
finish
