#!/bin/bash
# upgrade_test.sh BUILD OLDER: programs that run under the rdmaquota from before tenants, staged in OLDER, while this one
# is installed over it. Runs as root in the guest, where nothing is installed yet and this build is staged.
set -u
older=$2
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/running.sh
. "$here/running.sh"
objects=$programs/verbs_objects
limit=10

# install_from STAGE: as a package manager does, which renames new files over old ones: running programs keep theirs
install_from() {
    cp -a --remove-destination "$1/." / && rm -f /complete && ldconfig
}

# The kernel's own count of user programs' QPs.
qps() { rdma resource show qp | grep -c ' pid '; }
# limit_now: what is effective for `default`
limit_now() {
    local json
    json=$(rdmaquota show default --json)
    [[ $json =~ \"qp\":\{\"usage\":[0-9]+,\"limit\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}
# old_files: those of the older one that are there
old_files() {
    local name there=()
    for name in changed.json default policy policy.lock policy.old policy.tmp; do
        [ ! -e "/run/rdmaquota/$name" ] || there+=("$name")
    done
    echo "${there[*]}"
}
old_policy() { printf 'version = 1\n[tenant.default."*"]\nqp = %d\n' "$1"; }

# --- under the older one -----------------------------------------------------------------------------
install_from "$older"
old_policy $limit > policy.toml
rdmaquota reload policy.toml > /dev/null || not_ok "the older one puts its policy in force"
is "the older one is installed" "$(old_files)" "default policy policy.lock"
launch four "$objects" rc=4 wait drop=rc wait
launch more "$objects" rc=2 wait rc=3 wait
launch killed "$objects" uc=1 wait
is "programs hold objects" "$(qps)" 7

# --- this one over it --------------------------------------------------------------------------------
install_from "$RDMAQUOTA_STAGE"
rdmaquota reload policy.toml > reload.log 2>&1 || not_ok "reload" "$(cat reload.log)"
is "new programs may have what the old ones do not" "$(limit_now)" 3
run rdmaquota show
has "show has the old programs as a tenant" "$out" "tenant default (older rdmaquota)"
has "with their objects" "$(grep -A 20 'older rdmaquota)' <<< "$out")" "qp 4"
has "and why the limit is lower" "$out" "7 are used by programs of an older rdmaquota"
has "so has its JSON" "$(rdmaquota show --json)" '"name":"default (older rdmaquota)"'
has "doctor says how many they are" "$(rdmaquota doctor 2>&1)" "3 programs still run with it"
succeeds "repair leaves them alone" rdmaquota repair

go_on more
until_step more 2
has "an old program gets nothing more" "$(cat out.more)" "rc: 0 of 3, then EDQUOT"
launch new "$objects" rc=9 wait
has "a new program gets exactly what is left" "$(cat out.new)" "rc: 3 of 9, then EDQUOT"
is "old and new have the limit together" "$(qps)" $limit

go_on four
until_step four 2
rdmaquota reload policy.toml > /dev/null
is "what an old program destroys is there for new ones" "$(limit_now)" 7
launch second "$objects" rc=9 wait
has "which get it" "$(cat out.second)" "rc: 4 of 9, then EDQUOT"
is "the limit still holds" "$(qps)" $limit

kill_and_wait() { kill -9 "${pids[$1]}"; wait "${pids[$1]}" 2> /dev/null; }
kill_and_wait killed
rdmaquota set rxe0 qp=$limit > /dev/null
is "what a killed one had, too, by set" "$(limit_now)" 8
rdmaquota set rxe0 qp=9 > /dev/null
is "a lower limit counts the old programs" "$(limit_now)" 7
rdmaquota unset rxe0 qp > /dev/null
is "and the former one again" "$(limit_now)" 8

# --- the sidecar does it by itself ---------------------------------------------------------------------
if type rdmaquotad > /dev/null 2>&1; then
    start_sidecar
    end four
    end more
    for _ in $(seq 100); do [ "$(limit_now)" != $limit ] || break; sleep 0.1; done
    stop_sidecar
else
    end four
    end more
    rdmaquota reload policy.toml > /dev/null
fi
is "after the old programs' end the whole limit is there" "$(limit_now)" $limit
is "and no old file" "$(old_files)" ""
lacks "show has them no more" "$(rdmaquota show)" "older rdmaquota"
launch third "$objects" rc=9 wait
has "a new program gets the rest" "$(cat out.third)" "rc: 3 of 9, then EDQUOT"
is "which is the limit" "$(qps)" $limit
for name in new second third; do end $name; done
is "nothing is left" "$(qps)" 0

# --- while all of them create and destroy ---------------------------------------------------------------
umount /run/rdmaquota/tenants/*/here/ledgers
rm -rf /run/rdmaquota
install_from "$older"
rdmaquota reload policy.toml > /dev/null
launch churn1 "$programs/churn" -d rxe0 8
launch churn2 "$programs/churn" -d rxe0 8
(
    without_inputs
    highest=0
    until [ -e churned ]; do
        now=$(qps)
        [ "$now" -le "$highest" ] || { highest=$now; echo "$highest" > sampled; }
    done
) &
sampler=$!
sleep 1
install_from "$RDMAQUOTA_STAGE"
rdmaquota reload policy.toml > /dev/null
launch churn3 "$programs/churn" -d rxe0 8
launch churn4 "$programs/churn" -d rxe0 8
for _ in $(seq 8); do
    rdmaquota reload policy.toml > /dev/null
    rdmaquota set rxe0 qp=$limit > /dev/null
done
for name in churn1 churn2 churn3 churn4; do close_input $name; done
wait "${pids[churn1]}" "${pids[churn2]}" "${pids[churn3]}" "${pids[churn4]}"
touch churned
wait $sampler
tail -qn 1 out.churn* | sed "s/^/# /"
read -r highest < sampled
if [ "$highest" -le $limit ] && [ "$highest" -gt 4 ]; then
    ok "never are there more objects than the limit"
else
    not_ok "never are there more objects than the limit" "$highest"
fi
rdmaquota reload policy.toml > /dev/null
is "the whole limit is there again" "$(limit_now)" $limit
is "without an old file" "$(old_files)" ""
finish
