#!/bin/bash
# sidecar_test.sh BUILD: rdmaquotad's view of the kernel, and what it does about what it sees. Runs as root in the
# guest after an installation. What follows '#' on a line of its own is measured, not judged.
set -u
here=$(dirname "$0")
# shellcheck source=test/integration/tap.sh
. "$here/tap.sh"
device=rxe0
# shellcheck source=test/integration/guest.sh
. "$here/guest.sh"
programs=$1/test/programs
group=/sys/fs/cgroup/sidecar

start_sidecar() {
    : > sidecar.log
    rdmaquotad 2>> sidecar.log &
    sidecar=$!
    await 30 'sees what the kernel makes'
}
stop_sidecar() { kill "$sidecar"; wait "$sidecar" 2> /dev/null; }

# await SECONDS TEXT: until the sidecar has logged TEXT; its line in $line, the time it took in $took_ms
await() {
    local begin=${EPOCHREALTIME/./} end
    line=''
    until line=$(grep -F -m 1 -e "$2" sidecar.log); do
        end=${EPOCHREALTIME/./}
        [ $((end - begin)) -lt $(($1 * 1000000)) ] || { not_ok "waiting for '$2'" "$(tail -n 5 sidecar.log)"; return 1; }
        sleep 0.02
    done
    took_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
}

# in_group COMMAND...: in a cgroup of its own; as a background job, the command has the job's pid
# shellcheck disable=SC2016 # expanded by the inner shell
in_group() { exec sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' $group "$@"; }

echo +rdma > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p $group

bound() { xargs < $group/rdma.max; }

# --- bypass ----------------------------------------------------------------------------------------
policy <<< 'version = 1'
start_sidecar
bypass() { # NAME RESOURCE PROGRAM...: it is told, with what it has
    local name=$1 resource=$2
    shift 2
    : > sidecar.log
    start "$@"
    if await 10 "$resource"; then
        has "$name is reported" "$line" "bypass: pid $program "
        echo "# reported after $took_ms ms"
    fi
    proceed
    await 10 "bypass_ended: pid $program " && ok "and so is its end"
}
bypass "a program that calls ioctl itself" "pd: 5 in the kernel, 0 charged" "$programs/raw_uverbs" ioctl 5
bypass "a program that calls write itself" "pd: 7 in the kernel, 0 charged" "$programs/raw_uverbs" write 7
bypass "a statically linked verbs program" "qp: 3 in the kernel, 0 charged" "$programs/verbs_objects_static" rc=3 mr=2:8192 wait

: > sidecar.log
start "$programs/verbs_objects" rc=3 mr=2:8192 srq=1 ah=1 mw=1 wait
sleep 1.5
is "of a program that goes through the quota nothing is told" "$(cat sidecar.log)" ""
proceed
start "$programs/forker"
sleep 1.5
is "nor of one that forks" "$(cat sidecar.log)" ""
kill -9 "$(sed -n 's/^child //p' running)"
proceed

# --- what the policy asks for ----------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default]
bypass = "charge"
[tenant.default."*"]
pd = 7'
: > sidecar.log
start "$programs/raw_uverbs" ioctl 5
await 10 "pd: 5 in the kernel"
sleep 0.3
is "charge: what bypasses is in the ledger" "$(usage_of pd) $(usage_of hca_handle) $(usage_of hca_object)" "5 1 5"
run "$programs/verbs_objects" pd=2
is "and leaves others what is left" "$out" "pd: 1 of 2, then EDQUOT"
proceed
await 10 "bypass_ended: pid $program "
is "until it ends" "$(usage_of pd)" 0

policy <<< 'version = 1
[tenant.default]
bypass = "limit"
[tenant.default."*"]
hca_handle = 4
hca_object = 8'
: > sidecar.log
start in_group "$programs/raw_uverbs" write 5
await 10 "bypass_limited: pid $program "
is "limit: rdma.max of its cgroup is the tenant's limit" "$(bound)" "rxe0 hca_handle=4 hca_object=8"
run in_group "$programs/raw_uverbs" ioctl 5
has "and holds for what bypasses" "$out" "pd: 3 of 5 EAGAIN"
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
is "a killed sidecar leaves the limit" "$(bound)" "rxe0 hca_handle=4 hca_object=8"
start_sidecar
await 10 "bypass_limited: pid $program "
is "and the next one has it in hand" "$(bound)" "rxe0 hca_handle=4 hca_object=8"
proceed
await 10 "bypass_ended: pid $program "
is "what was found is put back when the bypass ends" "$(bound)" "rxe0 hca_handle=max hca_object=max"

policy <<< 'version = 1
[tenant.default]
bypass = "kill"'
: > sidecar.log
start "$programs/raw_uverbs" ioctl 5
await 10 "bypass_killed: pid $program " || kill "$program"
wait "$program" 2> /dev/null
is "kill: it is killed" $? 137
exec 9>&-
start "$programs/verbs_objects" rc=3 wait
sleep 1.5
kill -0 "$program" && ok "one that goes through the quota is not"
proceed

# --- backstop --------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_handle = 3
hca_object = 20'
sleep 1.5
is "the backstop has the tenant's limits" "$(bound)" "rxe0 hca_handle=3 hca_object=20"
rdmaquota set rxe0 hca_object=30 > /dev/null
sleep 0.6
is "and follows them" "$(bound)" "rxe0 hca_handle=3 hca_object=30"
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
start_sidecar
stop_sidecar
is "an orderly end puts back what was found, also by the sidecar before" "$(bound)" "rxe0 hca_handle=max hca_object=max"

# --- reaping ---------------------------------------------------------------------------------------
policy <<< 'version = 1'
start_sidecar
: > times
for round in $(seq 20); do
    start "$programs/verbs_objects" rc=20 mr=5:65536 wait
    slots=$("$programs/../integration/ledger_look" usage qp)
    kill -9 "$program"
    "$programs/../integration/ledger_look" wait qp 0 >> times
    wait "$program" 2> /dev/null
    exec 9>&-
    [ "$slots" = 20 ] || not_ok "round $round had its QPs" "$slots"
done
sort -n times -o times
echo "# usage of a killed process came back after $(sed -n 10p times) ms (median), $(tail -n 1 times) ms (most of 20)"
# The daemon's own round is a second: what comes back sooner does so because the death was seen.
if [ "$(sed -n 10p times)" -le 100 ]; then ok "a death is seen, and usage back, at once"; else not_ok "a death is seen, and usage back, at once" "$(cat times)"; fi
stop_sidecar

finish
