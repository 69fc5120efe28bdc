#!/bin/bash
# guard_smoke_test.sh BUILD: the guard in a kernel for which the whole suite `guard` is not run each time: it loads, refuses by each
# way once, harms nobody, is kept and let go of. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
echo "# $(uname -r)"
all_counts() { echo "$(counted default pd) $(counted default qp) $(counted default mr_bytes)"; }
# tries_with WANTED: whether a program that asks for ten PDs gets that answer
tries_with() {
    try "$programs/raw_uverbs" ioctl 10
    echo "$out"
    [ "$out" = "$1" ]
}
guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
lacks "nothing is wrong with it" "$(cat sidecar.log)" "there is no guard"

# --- it refuses
try "$programs/raw_uverbs" ioctl 10
is "by ioctl" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
try "$programs/verbs_objects_static" rc=4 mr=2:900000 wait
is "a static program's QPs and bytes" "$(grep -v rdmaquota <<< "$out" | xargs)" "rc: 3 of 4, then EDQUOT mr: 1 of 2, then EDQUOT"
try "$programs/around" threads 10
is "64 threads at once" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
try "$programs/around" child 10
is "a child with its parent's descriptor" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
is "nobody was killed for that" "$(killed_so_far)" 0

# --- what it cannot look at before it is made
try "$programs/raw_uverbs" unread 10
is "a request in memory that is not there ends its maker, and what it made is gone" "$ended, $have" "137, 0"
eventually "the event of that" contains sidecar.log "killed: "
has "which is told" "$(grep 'killed: ' sidecar.log)" "(raw_uverbs) made more than it may"
eventually "nothing of it is counted any more" prints 0 counted default pd

# --- it harms nobody else
try "$programs/verbs_objects" pd=4 rc=3 mr=1:1000000 wait
is "what is allowed is made" "$(xargs <<< "$out")" "pd: 4 of 4 rc: 3 of 3 mr: 1 of 1"
eventually "nothing is left in the books" prints "0 0 0" all_counts
is "nothing is left in the books" "$(all_counts)" "0 0 0"

# --- a device that comes is held from its first moment on
ip link add late0 type dummy && ip link set late0 up
rdma link add rxe_late type rxe netdev late0
for file in /sys/class/infiniband_verbs/uverbs*; do [ "$(cat "$file/ibdev")" != rxe_late ] || late=/dev/infiniband/${file##*/}; done
eventually "the new device has its file" test -e "$late"
try env UVERBS="$late" "$programs/raw_uverbs" ioctl 10
is "a device that has just come is held" "$out" "pd: 5 of 10 EDQUOT"
rdma link delete rxe_late
ip link delete late0

# --- it follows the limits, is kept, and let go of
rdmaquota set "$device" pd=3 > /dev/null
eventually "the new limit is followed" tries_with "pd: 3 of 10 EDQUOT"
ok "a lower limit is followed"
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
is "after a kill -9 the kernel keeps it" "$(state)" kept
try "$programs/raw_uverbs" ioctl 10
is "and refuses" "$out" "pd: 3 of 10 EDQUOT"
start_sidecar
guard_is deny
rdmaquota unset "$device" pd > /dev/null
eventually "the policy's limit is followed" tries_with "pd: 5 of 10 EDQUOT"
ok "the policy's limit is back"
rdmaquota guard off > /dev/null
try "$programs/raw_uverbs" ioctl 10
is "guard off takes it out" "$out, $(find /sys/fs/bpf/rdmaquota -mindepth 1 2> /dev/null | wc -l)" "pd: 10 of 10, 0"
stop_sidecar
finish
