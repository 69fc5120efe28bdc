#!/bin/bash
# sidecar_test.sh BUILD: rdmaquotad's view of the kernel, and what it does about what it sees. Runs as root in the
# guest after an installation. What follows '#' on a line of its own is measured, not judged.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
make_group

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
start "$programs/raw_uverbs" ioctl 4
await 10 "pd: 4 in the kernel, 0 charged"
has "show lists it" "$(rdmaquota show | tail -n 1 | tr -s ' ')" \
    "$program raw_uverbs rxe0 hca_object 4, hca_handle 1, pd 4"
is "and show --json" "$(rdmaquota show --json | python3 -c '
import json, sys
(one,) = json.load(sys.stdin)["tenants"][0]["bypasses"]
print(one["pid"], one["comm"], one["device"], one["resources"]["pd"])')" \
    "$program raw_uverbs rxe0 {'kernel': 4, 'ledger': 0}"
has "and top counts it" "$( (sleep 1; printf q) | script -qec "rdmaquota top" /dev/null)" "  1 around the quota"
proceed
await 10 "bypass_ended: pid $program "
has "until it ends" "$(rdmaquota show --json)" '"bypasses":[]'
bypass "a statically linked verbs program" "qp: 3 in the kernel, 0 charged" \
    "$programs/verbs_objects_static" rc=3 mr=2:8192 wait

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

# Of what was there before it, the kernel tells by which thread it was made, and nothing of threads that have ended.
stop_sidecar
for steps in thread:rc=3,mr=2,wait "thread:rc=3,mr=2 wait"; do
    # shellcheck disable=SC2086 # one word each
    start "$programs/verbs_objects" $steps
    start_sidecar
    sleep 2
    is "nor of one with threads that was there before ($steps)" "$(grep -e bypass -e leak sidecar.log)" ""
    proceed
    stop_sidecar
done
start_sidecar

# --- leaks -----------------------------------------------------------------------------------------
: > sidecar.log
start "$programs/verbs_objects" pd=5 rc=2 unseen=3 wait
await 10 "leak: pid $program " && has "who was charged for more than it has is told" "$line" \
    "rxe0, hca_object: 6 in the kernel, 9 charged, pd: 3 in the kernel, 6 charged"
proceed
await 10 "leak_ended: pid $program " && ok "and so is its end"
: > sidecar.log
start env RDMAQUOTA_DIR=/run/rdmaquota "$programs/../integration/ledger_user" rxe0 qp=3 mr_bytes=1MiB
await 10 "leak: pid $program " && has "also of one that the kernel knows nothing of" "$line" \
    "qp: 0 in the kernel, 3 charged"
proceed
await 10 "leak_ended: pid $program "

# --- rules by what the device tells ------------------------------------------------------------------
most=$(ibv_devinfo -v | sed -n 's/^\s*max_ah:\s*//p')
policy <<< 'version = 1
[tenant.default.rxe0]
ah = 20000
[[dynamic]]
device = "rxe0"
watch = "ah"
of = "device"
above = 2
below = 1
factor = 50
floor = 100'
: > sidecar.log
start "$programs/verbs_objects" ah=$((most / 50 + 1)) wait
await 10 "tightened: " && has "a rule follows what the device has at most" "$line" \
    "ah of the tenant on rxe0: 20000 -> 10000; ah at 2 % of $most"
proceed
await 10 "restored: " && has "until it is less" "$line" "ah of the tenant on rxe0: 10000 -> 20000"

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
mkfifo second_keys
in_group "$programs/raw_uverbs" write 2 < second_keys > /dev/null &
second=$!
exec 8> second_keys
await 10 "bypass_limited: pid $second "
proceed
await 10 "bypass_ended: pid $program "
is "it stays for another one in the cgroup" "$(bound)" "rxe0 hca_handle=4 hca_object=8"
exec 8>&-
wait $second
await 10 "bypass_ended: pid $second "
is "what was found is put back when the last bypass ends" "$(bound)" "rxe0 hca_handle=max hca_object=max"
: > sidecar.log
start in_group "$programs/raw_uverbs" write 5
await 10 "bypass_limited: pid $program "
policy <<< 'version = 1'
for _ in $(seq 100); do [[ $(bound) == *=max* ]] && break; sleep 0.1; done
is "or when the policy asks for it no more" "$(bound)" "rxe0 hca_handle=max hca_object=max"
proceed
echo "rxe0 hca_handle=2 hca_object=7" > $group/rdma.max
: > sidecar.log
policy <<< 'version = 1
[tenant.default]
bypass = "limit"
[tenant.default."*"]
hca_handle = 4
hca_object = 40'
start in_group "$programs/raw_uverbs" write 5
await 10 "bypass_limited: pid $program "
is "a limit of the cgroup's own that is tighter stays" "$(bound)" "rxe0 hca_handle=2 hca_object=7"
echo "$program" > /sys/fs/cgroup/cgroup.procs
echo "rxe0 hca_handle=max hca_object=max" > $group/rdma.max
mkdir -p /sys/fs/cgroup/other
: > sidecar.log
echo "$program" > /sys/fs/cgroup/other/cgroup.procs
await 10 "bypass_limited: pid $program "
is "who moves to another cgroup is limited there" "$(xargs < /sys/fs/cgroup/other/rdma.max)" \
    "rxe0 hca_handle=4 hca_object=40"
proceed
await 10 "bypass_ended: pid $program "
rmdir /sys/fs/cgroup/other
: > sidecar.log
for _ in 1 2 3 4 5 6 7 8; do sleep 0.4 | "$programs/raw_uverbs" write 3 > /dev/null; done
sleep 0.5
told=$(grep -c 'bypass: pid' sidecar.log)
is "who goes around the quota for a moment is seen ($told of 8)" "$((told >= 4))" 1

policy <<< 'version = 1
[tenant.default]
bypass = "kill"'
: > sidecar.log
start_doomed "$programs/raw_uverbs" ioctl 5
await 10 "bypass_killed: pid $program " || kill "$program"
wait "$program" 2> /dev/null
is "kill: it is killed" $? 137
start "$programs/verbs_objects" rc=3 wait
sleep 1.5
kill -0 "$program" && ok "one that goes through the quota is not"
stop_sidecar
start "$programs/daemonized"
start_sidecar
echo >&9
sleep 1.5
exec 9>&-
sleep 0.5
has "nor one that was left by its parent before the sidecar came" "$(cat running)" "ended by itself"
# shellcheck disable=SC2016 # expanded by the inner shell
start unshare --pid --fork sh -c '"$0"; sleep 5 < /dev/null 9>&-' "$programs/daemonized"
echo >&9
sleep 1.5
exec 9>&-
sleep 0.5
has "nor one whose pids and parent are of another namespace" "$(cat running)" "ended by itself"
policy <<< 'version = 1
mode = "off"'
start "$programs/verbs_objects" rc=3 wait
policy <<< 'version = 1
[tenant.default]
bypass = "kill"'
await 10 "bypass_kept: pid $program "
sleep 0.5
kill -0 "$program" && ok "nor one that was not charged because the mode was off"
proceed
start "$programs/verbs_objects" rc=3 wait
sleep 1
: > sidecar.log
rdmaquota repair --new > /dev/null
await 10 "bypass_kept: pid $program "
has "nor one that is charged in the ledger that there was before" "$line" "older than the ledger"
kill -0 "$program" && ok "which goes on"
proceed
policy <<< 'version = 1
[tenant.default]
bypass = "charge"'
sleep 2 # until the sidecar knows, which would kill
: > sidecar.log
start "$programs/raw_uverbs" ioctl 5
await 10 "bypass: pid $program "
for _ in $(seq 50); do [ "$(usage_of pd)" = 5 ] && break; sleep 0.1; done
rdmaquota repair --new > /dev/null
for _ in $(seq 50); do [ "$(usage_of pd)" = 5 ] && break; sleep 0.1; done
is "what is charged is charged in a new ledger too" "$(usage_of pd)" 5
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

# --- a pid namespace of its own ----------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default]
bypass = "kill"'
: > sidecar.log
start "$programs/raw_uverbs" ioctl 5
# shellcheck disable=SC2016 # expanded by the inner shell
unshare --pid --fork --mount-proc bash -c 'rdmaquotad 2>> sidecar.log &
    "$0" ioctl 6 < <(sleep 30) > inside
    echo $? > status
    kill $!
    wait $!' "$programs/raw_uverbs" 2> /dev/null
has "in a pid namespace of its own it does without the program" "$(grep -m 1 'not seen' sidecar.log)" \
    "the node's pid namespace, and this one has its own: only what netlink lists is known"
is "it holds those in there to the policy" "$(cat status)" 137
is "and knows nothing of others" "$(grep -c 'bypass: ' sidecar.log)" 1
kill -0 "$program" && ok "whom it lets alone"
proceed

finish
