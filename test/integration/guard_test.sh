#!/bin/bash
# guard_test.sh BUILD: the guard refuses what exceeds a limit, whoever asks and however, and nobody else. Runs as root in the
# guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
objects=$programs/verbs_objects
users_before=$(cat /sys/module/ib_uverbs/refcnt)
loaded() { /usr/sbin/bpftool prog | grep -c ' name '; }
loaded_before=$(loaded)
# Beside all that follows, one whose tenant has room.
{ guard_policy deny 5; printf '[tenant.bystander]\nmatch = [{ user = "65533" }]\n'; } > policy.toml
rdmaquota reload policy.toml > /dev/null
cp "$objects" "$work/objects"
steps=()
for _ in $(seq 600); do steps+=(rc=4 mr=2:900000 drop=rc drop=mr sleep=1); done
chmod 666 /dev/infiniband/uverbs0
(become 65533 "$work/objects" "${steps[@]}") > bystander 2>&1 &
bystander=$!
eventually "the bystander has begun" contains bystander mr:
own_pds=$(kernel_pds)  # with its one
# A program that is older than the guard, and holds two PDs, a CQ, an MR and an SRQ.
mkfifo early
unlisted "$objects" pd=1 mr=1:8192 srq=1 wait rc=4 mr=2:900000 pd=10 wait < early > old 2>&1 &
older=$!
exec 7<> early
waits old
# why: what the guard counts and told, behind a check that failed
why() { { rdmaquota guard; rdmaquota events | tail -n 5; tail -n 5 sidecar.log; } | sed 's/^/    # /'; }
begin=${EPOCHREALTIME/./}
start_sidecar
echo "# the guard was loaded after $(((${EPOCHREALTIME/./} - begin) / 1000)) ms"
is "what was there before the guard counts" "$(for what in pd cq mr mr_bytes srq hca_handle; do counted default $what; done | xargs)" "2 1 1 8192 1 1"
try "$programs/around" child 10
is "and leaves the rest" "$out" "pd: 3 of 10 EDQUOT"
until_counted default pd 2
echo >&7
waits old 2
is "and it gets no more than others" "$(grep -v waiting old | xargs)" \
    "pd: 1 of 1 mr: 1 of 1 srq: 1 of 1 rc: 3 of 4, then EDQUOT mr: 1 of 2, then EDQUOT pd: 3 of 10, then EDQUOT"
grep -q "mr: 1 of 2" old || why
echo >&7
exec 7>&-
wait $older
until_counted default pd 0
is "until it ends" "$(counted default pd)" 0
guard_is deny
is "its programs are in the kernel" "$([ "$(loaded)" -gt "$loaded_before" ] && echo yes)" yes

# --- the ways around
try "$programs/raw_uverbs" ioctl 10
is "raw ioctl" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
try "$programs/verbs_objects_static" pd=10
has "a static program" "$out" "pd: 4 of 10, then EDQUOT"
try "$programs/verbs_objects_static" rc=4 wait
has "its QPs" "$out" "rc: 3 of 4, then EDQUOT"
try "$programs/verbs_objects_static" mr=2:900000
has "its bytes" "$out" "mr: 1 of 2, then EDQUOT"
try "$programs/around" threads 10
is "64 threads at once" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
try "$programs/around" child 10
is "a child with its parent's descriptor" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
try sh -c 'exec 2>&1; "$0" orphan 10 < /dev/fd/0 & wait' "$programs/around"
eventually "the orphan has tried" contains tried pd:
is "an orphaned descriptor" "$(grep ^pd tried)" "pd: 5 of 10 EDQUOT"
until_counted default pd 0
try "$programs/around" missing 10
is "by requests in pages that are not there, it is killed for the first one too many" "$ended, $have" "137, 0"
await "killed: "
has "which is told" "$line" "(around) made more than it may"
# shellcheck disable=SC2016 # expanded by the inner shell
try unshare -m sh -c 'mount -t tmpfs tmpfs /etc/libibverbs.d && echo "driver rxe" > /etc/libibverbs.d/rxe.driver && exec "$0" rc=4 mr=2:900000 pd=10 wait' "$objects"
is "a program from which the provider is hidden" "$(xargs <<< "$out")" \
    "rc: 3 of 4, then EDQUOT mr: 1 of 2, then EDQUOT pd: 4 of 10, then EDQUOT"
# shellcheck disable=SC2016
try unshare -m sh -c 'mount -t tmpfs tmpfs /run/rdmaquota && exec "$0" rc=4 mr=2:900000 pd=10 wait' "$objects"
is "one that hides the quota directory" "$(grep : <<< "$out" | grep -v rdmaquota | xargs)" \
    "rc: 3 of 4, then EDQUOT mr: 1 of 2, then EDQUOT pd: 4 of 10, then EDQUOT"
# shellcheck disable=SC2016
try sh -c 'ulimit -v 16000; exec "$0" ioctl 10' "$programs/raw_uverbs"
is "one with little address space" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
# shellcheck disable=SC2016
try sh -c 'ulimit -v 16000; exec "$0" "$1" rc=10 wait' "$programs/requests" "$device"
is "and that by the library" "$(grep -v rdmaquota <<< "$out" | xargs)" "rc: 3 of 10 EDQUOT"
if runs_32_bit; then
    try "$programs/raw_compat"
    is "a 32-bit program" "$out" "pd: 5 of 10 EDQUOT"
else
    echo "# this kernel runs no 32-bit programs"
fi
try "$programs/raw_uverbs" write 5
is "by write(2) it has what it may" "$out, $have" "pd: 5 of 5, 5"
try "$programs/raw_uverbs" write 10
is "and is killed for the first one too many" "$ended, $have" "137, 0"
for what in written_qp=10 written_mr=10:900000; do
    try unlisted "$programs/requests" "$device" $what wait
    is "also by ${what%=*}" "$ended, $(grep -v Killed <<< "$out")" "137, "
done
try "$programs/around" many 10
is "a request with more attributes than are looked at is refused" "$out" "pd: 0 of 10 EDQUOT"
if runs_32_bit; then
    try "$programs/around" victims 10
    is "the children of one make one too many" "$have" 6
    until_counted default pd 0
fi

# --- nobody else
is "nobody else is disturbed meanwhile" "$(sort -u bystander | xargs), $(kill $bystander && echo alive)" \
    "drop mr: 2 drop rc: 4 mr: 2 of 2 rc: 4 of 4, alive"
wait $bystander 2> /dev/null
own_pds=$(kernel_pds)
is "or killed" "$(killed_so_far)" "$(runs_32_bit && echo 5 || echo 4)"
try "$objects" pd=4 wait
is "what is allowed is made" "$out, $have" "pd: 4 of 4, 5"
try "$objects" ctx=1 rc=3 mr=1:1000000
has "also by others" "$(xargs <<< "$out")" "rc: 3 of 3"
is "and nothing is left in the books" "$(counted default pd) $(counted default qp) $(counted default mr_bytes)" "0 0 0"
rdmaquota set "$device" pd=7 > /dev/null
followed
try "$programs/raw_uverbs" ioctl 10
is "a limit that was set holds" "$out" "pd: 7 of 10 EDQUOT"
rdmaquota set "$device" pd=3 > /dev/null
followed
try "$programs/raw_uverbs" ioctl 10
is "also a lower one" "$out" "pd: 3 of 10 EDQUOT"
rdmaquota unset "$device" pd > /dev/null
rdmaquota set "$device" pd=2 --process > /dev/null
followed
try "$programs/raw_uverbs" ioctl 10
is "each process's limit" "$out" "pd: 2 of 10 EDQUOT"
rdmaquota unset "$device" pd --process > /dev/null
rdmaquota set total pd=3 --process > /dev/null
followed
try "$programs/raw_uverbs" ioctl 10
is "that of its sum over devices" "$out" "pd: 3 of 10 EDQUOT"
await "the process has no more room over all devices by the kernel's count"
rdmaquota unset total pd --process > /dev/null
rdmaquota set total pd=4 > /dev/null
followed
try "$programs/raw_uverbs" ioctl 10
is "the limit of the sum over devices" "$out" "pd: 4 of 10 EDQUOT"
rdmaquota unset total pd > /dev/null
followed

# --- rates, at twice the burst
rates() { # of the tenant
    { guard_policy deny 1000; printf '%s\n' "$@"; } > rates.toml
    rdmaquota reload rates.toml > /dev/null
    followed
}
made() { sed -n 's/^pd: \([0-9]*\) of .*/\1/p; s/^mr: \([0-9]*\) of .*/\1/p' <<< "$out" | tail -n 1; }
between() { is "$1" "$([ "$(made)" -ge "$2" ] && [ "$(made)" -le "$3" ] && echo yes || echo "$out")" yes; }
rates 'commands_per_s = { limit = 1, burst = 10 }'
try "$programs/raw_uverbs" ioctl 500
between "commands beyond a rate are refused" 20 400
has "with the tenant's errno" "$out" EDQUOT
await "is beyond twice the burst of its rate by the kernel's count"
is "counted" "$([ "$(counted default commands_per_s refused)" -ge 1 ] && echo yes)" yes
has "and listed" "$(rdmaquota guard | grep commands_per_s | xargs)" "default $device commands_per_s - max"
try "$programs/raw_uverbs" write 10
is "by write(2) the first one too many is killed" "$ended, $have" "137, 0"
rates 'registered_per_s = { limit = "4KiB", burst = "64KiB" }'
try "$programs/verbs_objects_static" mr=500:4096
between "so are bytes" 32 200
[ "$(made)" -ge 32 ] || why
rates 'commands_per_s = { limit = 200, burst = 4 }'
try "$objects" pd=300 wait
has "who waits in the library is not refused" "$out" "pd: 300 of 300"
rates 'cq = 1000' '[tenant.default.process."*"]' 'commands_per_s = 10'
try "$programs/raw_uverbs" ioctl 500
between "a process's rate" 20 400
try "$programs/raw_uverbs" ioctl 5
is "is each process's" "$out" "pd: 5 of 5"
rdmaquota reload policy.toml > /dev/null
followed

# --- ledgers that say anything, and pids that come again
killed=$(killed_so_far)
for garbage in 'truncate -s 0' 'truncate -s 5000' 'dd if=/dev/urandom bs=4096 count=40 conv=notrunc status=none of='; do
    # shellcheck disable=SC2086 # a command and its words
    case $garbage in *of=) $garbage"$default_ledger/ledger" ;; *) $garbage "$default_ledger/ledger" ;; esac
    try "$programs/raw_uverbs" ioctl 4
    is "under '${garbage%% of=*}' of the ledger nobody is refused" "$out, $have" "pd: 4 of 4, 4"
    try "$objects" pd=4 wait
    is "nor who has the library" "$(grep pd: <<< "$out"), $have" "pd: 4 of 4, 5"
    eventually "the ledger is replaced" rdmaquota repair default --new
done
is "or killed" "$(killed_so_far)" "$killed"
try "$objects" pd=4 wait
is "with a new ledger all is as before" "$out, $have" "pd: 4 of 4, 5"
rdmaquota set "$device" pd=2 --process > /dev/null
followed
try "$programs/raw_uverbs" ioctl 2
first=$program
again=no
for _ in $(seq 20); do
    echo $((first - 1)) > /proc/sys/kernel/ns_last_pid
    "$programs/raw_uverbs" ioctl 2 < /dev/null > tried 2>&1 &
    program=$!
    wait $program
    [ "$program" != "$first" ] || { again=$(head -n 1 tried); break; }
done
is "a pid that comes again has the room of a new process" "$again" "pd: 2 of 2"
rdmaquota unset "$device" pd --process > /dev/null
followed

# --- seen
try "$programs/raw_uverbs" ioctl 10
has "the command tells" "$(rdmaquota guard)" "the guard is on: the kernel refuses what exceeds a limit"
has "what was refused" "$(rdmaquota guard | grep ' pd ' | xargs)" "default $device pd 0 5"
"$programs/raw_uverbs" ioctl 3 < forever > held 2>&1 &
holder=$!
waits held
has "show has the kernel's count beside the ledger's" "$(rdmaquota show | grep ' pd ' | xargs)" "$device pd 0 3 5"
has "and the state" "$(rdmaquota show --json)" '"guard":{"state":"deny"}'
kill $holder
wait $holder 2> /dev/null
until_counted default pd 0
await "refused: "
has "the event names who and what" "$line" "pd on $device: tenant default uses"

# --- without the sidecar
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
is "after a kill -9 the kernel keeps it" "$(state)" kept
try "$programs/raw_uverbs" ioctl 10
is "and refuses" "$out, $have" "pd: 5 of 10 EDQUOT, 5"
"$programs/raw_uverbs" ioctl 3 < forever > held 2>&1 &
holder=$!
waits held
start_sidecar
is "a successor takes over what there is" "$(counted default pd)" 3
is "and is the only one" "$(find /sys/fs/bpf/rdmaquota -mindepth 1 -maxdepth 1 | wc -l)" 1
try "$programs/raw_uverbs" ioctl 10
is "with the same limits" "$out" "pd: 2 of 10 EDQUOT"
kill $holder
wait $holder 2> /dev/null

# --- devices that come while it runs, more than 32
# Two on 6.12, which died with so many once, of a broken list in its allocator.
many=34
[[ $(uname -r) != 6.12.* ]] || many=2
for i in $(seq $many); do
    ip link add many$i type dummy
    ip link set many$i up
    rdma link add rxe_$i type rxe netdev many$i
done
followed
try unlisted "$objects" -d rxe_$many pd=9 wait
has "the limits hold on the last of many devices" "$out" "pd: 4 of 9, then EDQUOT"
is "and the sidecar runs" "$(kill -0 "$sidecar" && echo yes)" yes
cp policy.toml before.toml
printf '[process."*"]\npd = 4\n' >> policy.toml
rdmaquota reload policy.toml > /dev/null
followed
try "$programs/around" devices $many
is "a process with limits of its own opens all of them" "$out" "pd: $many of $many"
rdmaquota set rxe_1 pd=20 > /dev/null
followed
try "$programs/around" reopened 20
is "a process has one limit for each device, whatever it closed before" "$out" "pd: 4 of 20 EDQUOT"
rdmaquota unset rxe_1 pd > /dev/null
rdmaquota reload before.toml > /dev/null
rdmaquota set total pd=6 > /dev/null
followed
static_on() { unlisted "$objects" -d "$@"; }
start static_on rxe_1 pd=3 wait
try static_on rxe_2 pd=9 wait
has "a limit over all devices is for what is on each of them together" "$out" "pd: 1 of 9, then EDQUOT"
proceed
rdmaquota unset total pd > /dev/null
followed
for i in $(seq $many); do
    rdma link delete rxe_$i
    ip link delete many$i
done

# --- cgroups that nobody knows yet
cat > policy.toml << 'END'
version = 1
[sidecar]
guard = "deny"
[tenant.jobs]
match = [{ cgroup = "/jobs/**", members = ["*"] }]
[tenant.jobs."*"]
pd = 4
[tenant.other]
match = [{ cgroup = "/other/**", members = ["*"] }]
[tenant.other."*"]
pd = 4
END
rdmaquota reload policy.toml > /dev/null
guard_is deny
# from GROUP USER COMMAND...: in a new cgroup
from() {
    mkdir -p "/sys/fs/cgroup/$1"
    echo $BASHPID > "/sys/fs/cgroup/$1/cgroup.procs"
    exec setpriv --reuid="$2" --regid="$2" --clear-groups "${@:3}"
}
# hold_from GROUP USER COMMAND...: until `drop`; what it printed is in `held`
hold_from() {
    rm -f keys
    mkfifo keys
    (from "$@") < keys > held 2>&1 &
    holder=$!
    exec 7<> keys
    waits held
    rm keys
}
drop() { echo >&7; exec 7>&-; wait $holder; }
cp "$programs/raw_uverbs" "$work/raw"
cp "$programs/around" "$work/around"
cp "$programs/strange_thread" "$work/strange_thread"
stop_again() { kill -CONT "$sidecar"; followed; kill -STOP "$sidecar"; }
# meanwhile COMMAND...: while the sidecar is stopped, but not yet taken for gone, which is after five seconds; until that was in time
meanwhile() {
    for _ in 1 2 3 4 5 6; do
        stop_again
        begin=${EPOCHREALTIME/./}
        "$@"
        [ $((${EPOCHREALTIME/./} - begin)) -ge 4000000 ] || return
        echo "# not in time: $out"
    done
}
AT_ONCE=yes meanwhile try from jobs/0 65532 "$work/raw" ioctl 10
is "who is not known yet opens nothing" "$out, $have" "raw_uverbs: Resource temporarily unavailable, 0"
AT_ONCE=yes meanwhile try from jobs/0 65532 "$work/raw" unread 10
is "nor by requests that cannot be read" "$out, $have" "raw_uverbs: Resource temporarily unavailable, 0"
AT_ONCE=yes meanwhile try from jobs/0 65532 "$work/raw" opened 10
is "and makes nothing by a device that was opened around the look" "$out, $have" "pd: 0 of 10 EAGAIN, 0"
stop_again
hold_from jobs/5 65528 "$work/raw" write 10
kill -CONT "$sidecar"
eventually "who made too much by write while it was not known is killed" ended $holder
exec 7>&-
wait $holder 2> /dev/null
is "who made too much by write while it was not known is killed" $? 137
until_counted jobs pd 0
mkdir -p /sys/fs/cgroup/jobs/6/below
echo threaded > /sys/fs/cgroup/jobs/6/below/cgroup.type
try from jobs/6 0 "$work/strange_thread" /sys/fs/cgroup/jobs/6/below/cgroup.threads
is "a thread in a cgroup of its own is known by that" "$out" "opened"
try from jobs/1 65534 "$work/raw" ioctl 10
is "a moment later it is known, and held to its tenant's limit" "$out" "pd: 4 of 10 EDQUOT"
try from other/1 65533 "$work/raw" ioctl 3
is "so is another user in another tenant's new cgroup" "$out" "pd: 3 of 3"
hold_from other/2 65531 "$work/objects" pd=2 wait
has "the library tries again by itself" "$(cat held)" "pd: 2 of 2"
is "and what it makes, with a PD of its own, counts where it belongs" "$(counted jobs pd), $(counted other pd)" "0, 3"
drop
stop_again
hold_from jobs/2 65530 "$work/raw" ioctl 10
is "without the sidecar it counts as default after a while" "$(head -n 1 held)" "pd: 10 of 10"
kill -CONT "$sidecar"
until_counted jobs pd 10
is "and where it belongs once the sidecar is back" "$(counted jobs pd), $(counted default pd)" "10, 0"
try from jobs/1 65534 "$work/raw" ioctl 10
is "where there is no room then" "$out" "pd: 0 of 10 EDQUOT"
drop
until_counted jobs pd 0

# --- modes
"$programs/around" again 10 < <(until [ -e go ]; do pause 0.1; done; echo; pause 1; echo) > poisoned 2>&1 &
poisoned=$!
waits poisoned
guard_policy watch 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
guard_is watch
try "$programs/raw_uverbs" ioctl 10
is "watch refuses nothing" "$out" "pd: 10 of 10"
is "and counts" "$([ "$(counted default pd refused)" -ge 5 ] && echo yes)" yes
touch go
wait $poisoned
has "nor does it refuse an open file that made too much" "$(cat poisoned)" "again: made"
out=$(rdmaquota guard off)
has "guard off takes it out" "$out" "out of the kernel"
kill "$sidecar"
wait "$sidecar" 2> /dev/null
is "then the kernel's module is in use by nobody more than before" "$(cat /sys/module/ib_uverbs/refcnt)" "$users_before"
start_sidecar
guard_is watch
rdmaquota guard off > /dev/null
is "at once" "$(state), $(find /sys/fs/bpf/rdmaquota -mindepth 1 | wc -l)" "off, 0"
guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
guard_is deny
kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
rdmaquota guard off > /dev/null
try "$programs/raw_uverbs" ioctl 10
is "also without the sidecar" "$out" "pd: 10 of 10"
eventually "its programs leave the kernel" prints "$loaded_before" loaded
is "and no program of it is in the kernel" "$(loaded)" "$loaded_before"
# The last of what is done in a guest.
rdma link delete "$device"
is "and the kernel's modules can be unloaded" "$(rmmod rdma_ucm rdma_rxe ib_uverbs 2>&1)" ""
finish
