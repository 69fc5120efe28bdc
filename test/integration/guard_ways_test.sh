#!/bin/bash
# guard_ways_test.sh BUILD: the guard's corners: files and requests that are not as usual, tenants of all modes, and what happens
# where nobody is there to know a tenant. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
# bare COMMAND...: without the provider
# shellcheck disable=SC2016 # expanded by the inner shell
bare() { unshare -m sh -c 'mount -t tmpfs tmpfs /etc/libibverbs.d && echo "driver rxe" > /etc/libibverbs.d/rxe.driver && exec "$@"' sh "$@"; }
# as USER COMMAND...
as() { (become "$@"); }
set_limit() { rdmaquota set "$device" "$@" > /dev/null && followed; }
unset_limit() { rdmaquota unset "$device" "$@" > /dev/null && followed; }
cp "$programs/raw_uverbs" "$programs/around" "$programs/stuck" "$work"
chmod 666 /dev/infiniband/uverbs0

guard_policy deny 5 > policy.toml
rdmaquota reload policy.toml > /dev/null
"$programs/refuser" "$programs/refuser.bpf.o" < forever > refuser 2>&1 &
refuser=$!
waits refuser
is "another security module is there before" "$(cat refuser)" waiting
# A file that no process has while the guard lists what there is.
mkfifo calls
"$programs/around" flight 10 < calls > flown 2>&1 &
flying=$!
exec 7<> calls
waits flown
start_sidecar
is "a file in flight is not found" "$(counted default pd)" 0
guard_is deny
echo >&7
waits flown 2
is "but counts with what was made by it as soon as more is to be made" "$(grep pd: flown), $(counted default pd)" "pd: 3 of 10 EDQUOT, 5"
echo >&7
exec 7>&-
wait $flying
until_counted default pd 0

# --- requests
try bare "$programs/requests" rxe0 reversed=10
is "attributes in another order" "$out" "reversed: 4 of 10 EDQUOT"
try bare "$programs/requests" rxe0 hidden_mr=1:2000000
is "an input behind many attributes" "$out" "hidden_mr: 0 of 1 EDQUOT"

if printf '%s\n' 6.18 "$(uname -r)" | sort -VC; then
    try bare "$programs/requests" rxe0 method_mr=3:500000
    is "MRs by a method that only newer kernels have" "$out" "method_mr: 2 of 3 EDQUOT"
fi

# --- what another security module refuses afterwards
try "$programs/around" refused 10
is "takes no room from anybody" "$out" "pd: 5 of 10 EDQUOT"
until_counted default pd 0
is "nor keeps any" "$(counted default pd)" 0
kill $refuser
wait $refuser 2> /dev/null
fences=(seccomp)
printf '%s\n' 6.10 "$(uname -r)" | sort -VC && fences+=(landlock)  # which refuses no ioctl before
for fence in "${fences[@]}"; do
    try "$programs/fenced" "$fence" "$programs/raw_uverbs" ioctl 10
    is "what $fence refuses" "$out" "raw_uverbs: Permission denied"
    try "$programs/raw_uverbs" ioctl 10
    is "takes no room either" "$out" "pd: 5 of 10 EDQUOT"
    until_counted default pd 0
done

# --- files
set_limit hca_handle=1
try "$programs/around" opens 18000
is "contexts that are refused leave no room taken" "$out, $(counted default hca_handle)" "pd: 1 of 18000 EDQUOT, 0"
try "$programs/raw_uverbs" ioctl 3
is "after which one is opened as ever" "$out" "pd: 3 of 3"
"$programs/sacrifices" contexts 20 < forever > contexts 2>&1 &
maker=$!
waits contexts
is "nor are they opened by requests that cannot be read" "$(head -n 1 contexts), $(counted default hca_handle)" "killed: 0, 1"
try "$programs/raw_uverbs" write 1
is "who opens one too many by write is killed" "$ended" 137
kill $maker
wait $maker 2> /dev/null
until_counted default hca_handle 0
unset_limit hca_handle
"$programs/around" opens 17000 < forever > opened 2>&1 &
opener=$!
waits opened
opened=$(sed -n 's/^pd: \([0-9]*\) of 17000 EDQUOT$/\1/p' opened)
is "where the guard has no room for one more, no context is opened" \
    "$([ "${opened:-0}" -gt 8000 ] && [ "$opened" -le 16384 ] && echo yes || cat opened)" yes
kill $opener
wait $opener 2> /dev/null
try "$programs/raw_uverbs" ioctl 3
is "and is again when those are closed" "$out" "pd: 3 of 3"
try "$programs/around" fresh 8
is "children that open the device themselves make one too many together" "$have" 6
until_counted default pd 0
try "$programs/raw_uverbs" ioctl 3
is "and others open it again when that is gone" "$out" "pd: 3 of 3"

# --- children that let themselves be killed, whose descriptors live on
try "$programs/sacrifices" vector 1000
is "what one writev of many requests makes counts, and its maker is killed" "$(head -n 1 tried), $have" "killed: 1, 1000"
until_counted default pd 0
try "$programs/sacrifices" ring 20
is "so is who makes too much by io_uring with another's credentials" "$(head -n 1 tried), $have" "killed: 15, 20"
until_counted default pd 0
try "$programs/sacrifices" opened 20
is "children that opened the device before make one too many together" "$have" 6
until_counted default pd 0
set_limit cq=1
try "$programs/sacrifices" kinds 10
is "also where something else is exceeded in between, and is not any more" "$have" 6
unset_limit cq
until_counted default pd 0
try "$programs/sacrifices" pages 40
is "who makes too much by requests that cannot be read is killed" "$ended, $have" "137, 0"
until_counted default pd 0
if runs_32_bit; then
    try "$programs/sacrifices" old 40
    is "also by the call of 32-bit programs" "$ended, $have" "137, 0"
    until_counted default pd 0
    set_limit pd=2 --process
    try "$programs/sacrifices" files 10
    is "whose children exceed the limit of a process opens no device any more" "$(head -n 1 tried), $have" "killed: 1, 3"
    unset_limit pd --process
    until_counted default pd 0
fi
try "$programs/around" events 17000
is "files of events fill no table" "$out" "pd: 5 of 17000 EDQUOT"

# --- requests that wait for a page that never comes
echo 1 > /proc/sys/vm/unprivileged_userfaultfd
cat > policy.toml << 'END'
version = 1
[sidecar]
guard = "deny"
[tenant.default."*"]
pd = 5
[tenant.stuck]
match = [{ user = "65534" }]
[tenant.stuck."*"]
pd = 1200
END
rdmaquota reload policy.toml > /dev/null
followed
become 65534 "$work/stuck" 2000 < /dev/null > unanswered 2>&1 &
stuck=$!
until_counted stuck pd 1200
is "threads that are stuck count" "$(counted stuck pd)" 1200
try "$programs/raw_uverbs" ioctl 10
is "and are in nobody's way" "$out" "pd: 5 of 10 EDQUOT"
kill $stuck
wait $stuck 2> /dev/null
until_counted stuck pd 0
is "when they are killed nothing is left" "$(counted stuck pd) $(counted stuck hca_handle)" "0 0"

# --- requests in pages that never come: nobody waits for them but their threads
# asking N: whether that many threads wait for a page
asking() { prints "$1" count_asking; }
count_asking() { grep -l userfault /proc/$stuck/task/*/wchan 2> /dev/null | wc -l; }
become 1000 "$work/stuck" 200 requests < /dev/null > unread 2>&1 &
stuck=$!
eventually "200 threads wait for their requests" asking 200
is "no thread waits in a BPF program" "$(cat /proc/$stuck/task/*/stack | grep -c bpf_prog_)" 0
rdmaquota guard off > /dev/null
is "beside requests that never come the guard can be turned off" "$(state)" off
rdmaquota reload policy.toml > /dev/null
guard_is deny
kill "$sidecar"
eventually "the sidecar ends" ended "$sidecar"
start_sidecar
guard_is deny
try "$programs/verbs_objects_static" pd=10
has "it begins again, and a static program is held" "$out" "pd: 4 of 10, then EDQUOT"
is "while they are there" "$(asking 200 > /dev/null && echo yes)" yes
kill $stuck
wait $stuck 2> /dev/null

# --- nobody there to know a tenant
mkdir -p /sys/fs/cgroup/jobs
cat > policy.toml << 'END'
version = 1
deny_errno = "EAGAIN"
[sidecar]
guard = "deny"
[tenant.default."*"]
pd = 5
[tenant.a."*"]
pd = 6
[tenant."a/b"]
match = [{ user = "65534" }]
deny_errno = "ENOMEM"
[tenant."a/c"]
match = [{ user = "65533" }]
[tenant.audited]
match = [{ user = "65532" }]
mode = "audit"
[tenant.audited."*"]
pd = 2
[tenant.free]
match = [{ user = "65531" }]
mode = "off"
[tenant.free."*"]
pd = 2
[tenant.jobs]
match = [{ cgroup = "/jobs/**", members = ["*"] }]
[tenant.jobs."*"]
pd = 9
[tenant.root]
match = [{ user = "root" }]
END
rdmaquota reload policy.toml > /dev/null
followed
guard_is deny
cp "$programs/around" "$work/other"
chmod 755 "$work"
chmod u+s "$work/other"
kill -STOP "$sidecar"
become 65530 "$work/around" become 3 < /dev/null > become 2>&1 &
becomes=$!
became() { grep -q other "/proc/$becomes/comm" || ended $becomes; }
eventually "it becomes the other program" became
kill -CONT "$sidecar"
until_counted default pd 3
is "a program that becomes root's meanwhile is not root's" "$(counted default pd) $(counted root pd)" "3 0"
kill $becomes
wait $becomes 2> /dev/null
until_counted default pd 0
try "$programs/sacrifices" users 12
some=$(sed -n 's/.*users: \([0-9]*\).*/\1/p' <<< "$out")
is "users of a user namespace make too much once before they are known, not each of them" \
    "$([ "${some:-0}" -ge 1 ] && [ "$some" -le 2 ] && echo yes || echo "$out")" yes
until_counted default pd 0
for user in 65534 65533 65532 65531; do known become $user; done
try as 65534 "$work/raw_uverbs" ioctl 10
is "what the tenant above may have" "$out" "pd: 6 of 10 ENOMEM"
become 65534 "$work/raw_uverbs" ioctl 4 < forever > held 2>&1 &
holder=$!
waits held
try as 65533 "$work/raw_uverbs" ioctl 10
is "is for all below it together" "$out" "pd: 2 of 10 EAGAIN"
is "and each counts its own" "$(counted a pd) $(counted a/b pd)" "4 4"
kill $holder
wait $holder 2> /dev/null
until_counted a pd 0
try as 65532 "$work/raw_uverbs" ioctl 4
is "in an audited tenant nothing is refused" "$out" "pd: 4 of 4"
is "but counted as such" "$(counted audited pd refused)" 2
try as 65531 "$work/raw_uverbs" ioctl 4
is "where quotas are off there are none" "$out" "pd: 4 of 4"

# These groups have the same hash together with this user as user 65531 without any.
alike() { exec setpriv --reuid=101234 --regid=101234 --groups=100529,104348,109002,116160,132229,148264,153339,157529 "$@"; }
known alike
try alike "$work/raw_uverbs" ioctl 10
is "groups that are chosen for it make nobody another user" "$out" "pd: 5 of 10 EAGAIN"

# shellcheck disable=SC2016 # expanded by the inner shell
in_job() { # JOB COMMAND...: in place of this shell
    mkdir -p "/sys/fs/cgroup/jobs/$1"
    exec sh -c 'echo $$ > "/sys/fs/cgroup/jobs/$0/cgroup.procs"; exec "$@"' "$@"
}
makers=()
for job in $(seq 2 13); do
    in_job "$job" "$programs/preempted" pds 3 < forever > "made.$job" 2>&1 &
    makers+=($!)
done
for job in $(seq 2 13); do waits "made.$job"; done
is "what is made and destroyed while it is found out whose it is counts once" \
    "$(counted jobs hca_handle): $(counted jobs pd) $(counted node pd), $(counted default pd)" "12: 0 0, 0"
kill "${makers[@]}"
wait "${makers[@]}" 2> /dev/null

kill -9 "$sidecar"
wait "$sidecar" 2> /dev/null
sleep 6
try in_job 1 "$work/raw_uverbs" ioctl 10
is "without the sidecar, who is not known has what default may" "$out" "pd: 5 of 10 EAGAIN"
in_job 1 "$work/raw_uverbs" ioctl 4 < forever > held 2>&1 &
holder=$!
waits held
try in_job 1 "$work/raw_uverbs" ioctl 10
is "all such together" "$out" "pd: 1 of 10 EAGAIN"
start_sidecar
until_counted jobs pd 4
is "and is known again when it is there" "$(counted jobs pd) $(counted default pd)" "4 0"
kill $holder
wait $holder 2> /dev/null
stop_sidecar
rdmaquota guard off > /dev/null
finish
