#!/bin/bash
# guard_preempted_test.sh BUILD: threads that preempt each other in the middle of requests, on one CPU, in a kernel that preempts
# threads in the kernel: it skips BPF programs for fentry and fexit then. RDMAQUOTA_SECONDS: how long each part takes. Runs as
# root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
seconds=${RDMAQUOTA_SECONDS:-10}
grep -qE "\((full|lazy)\)" /sys/kernel/debug/sched/preempt || echo full > /sys/kernel/debug/sched/preempt
has "this kernel preempts threads in the kernel" "$(sed -E 's/\((full|lazy)\)/preempts/' /sys/kernel/debug/sched/preempt)" preempts

{
    guard_policy deny 64
    echo 'hca_handle = 16'
} > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny

# rounds NAME LIMIT: `preempted NAME` has LIMIT at most, and leaves nothing
rounds() {
    timeout 120 "$programs/preempted" "$1" "$seconds" < /dev/null > out 2>&1
    status=$?
    sed 's/^/# /' out
    is "preempted $1: ends as it wants to" $status 0
    most=$(sed -n 's/most: //p' out)
    is "preempted $1: never more than the limit" "$([ "${most:-99}" -le "$2" ] && echo yes || echo "$most")" yes
    until_counted default pd 0
    until_counted default hca_handle 0
    is "preempted $1: nothing is left in the books" "$(counted default pd) $(counted default hca_handle)" "0 0"
    bpftool prog show | sed -n 's/.* name \([a-z_]*\) .*recursion_misses \([0-9]*\)/# the kernel skipped \1 \2 times so far/p'
}
all_rounds() {
    rounds pds 64
    has "it had them all" "$(cat out)" "most: 64"
    rounds files 16
    rounds killed 16
}
all_rounds
# And where kprobes are skipped, too: beside one who reads maps of BPF, or means to.
"$programs/map_reader" &
reader=$!
all_rounds
"$programs/verbs_objects" odp=200:65536 wait < forever > held 2>&1 &
holder=$!
waits_or_ends held $holder
if grep -q EOPNOTSUPP held; then
    echo "# on this kernel $(grep odp held)"
else
    has "on-demand MRs that are made meanwhile are as many as asked for" "$(cat held)" "odp: 200 of 200"
    is "they pin nothing" "$(counted default mr) $(counted default mr_bytes)" "200 0"
fi
kill $holder
wait $holder 2> /dev/null
kill $reader
wait $reader 2> /dev/null
until_counted default pd 0  # ends that were not seen are found within two seconds
try "$programs/raw_uverbs" ioctl 65
is "who comes afterwards has the limit" "$(grep -o '[0-9]* of 65' <<< "$out")" "64 of 65"
is "nobody was killed" "$(killed_so_far)" 0
stop_sidecar
rdmaquota guard off > /dev/null
finish
