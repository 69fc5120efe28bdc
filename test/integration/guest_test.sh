#!/bin/bash
# guest_test.sh BUILD: the main job on a real device. Runs as root in the guest after an
# installation; the programs are unchanged ones that find rxe0 through libibverbs.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
objects=$programs/verbs_objects

# --- creation, per tenant ----------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
for type in rc uc ud; do
    run "$objects" $type=5 drop=$type $type=5
    is "2 of 5 $type QPs under qp=2, and again after destroying them" "$out" \
        "$type: 2 of 5, then EDQUOT
drop $type: 2
$type: 2 of 5, then EDQUOT"
done
has "the denial line" "$log" "rdmaquota: qp on rxe0 denied (EDQUOT): tenant default uses 2 of 2, 1 more asked by pid "
has "the denial line names the command that allows it" "$log" "to allow it: rdmaquota set rxe0 qp=3"
RDMAQUOTA_LOG_LEVEL=debug run "$objects" rc=1
has "at info a line says for whom limits hold, and where they come from" "$log" "verbs_objects), mode enforce: tenant default (no match \
holds), limits from /run/rdmaquota/tenants/default/here/limits-"
has "debug names the providers" "$log" "rdmaquota: providers that are limited here: "
has "and what is limited" "$log" "rdmaquota: rxe0 is opened in tenant default: qp 2"
is "the loader opens a real provider once" \
    "$(LD_DEBUG=files "$objects" rc=1 2>&1 | grep -c '/librxe-rdmav34.so .*dynamically loaded')" 1
chmod 666 /dev/infiniband/*
run setpriv --reuid daemon --clear-groups "$objects" rc=3
has "who may not change limits is told what is left, and what to ask for" "$log" "this process has 2 of it: destroy what it no \
longer needs; an administrator can allow it with: rdmaquota set rxe0 qp=3"
rdmaquota set rxe0 qp=1 > /dev/null
run "$objects" rc=3
has "a limit that was lowered is raised again by unset" "$log" "to allow it: rdmaquota unset rxe0 qp"
eval "$(sed -n 's/.*to allow it: \(rdmaquota unset .*\)/\1/p' <<< "$log")" > /dev/null
run "$objects" rc=2
is "and it is" "$out" "rc: 2 of 2"
run "$objects" qpx=3
is "create_qp_ex is charged too" "$out" "qpx: 2 of 3, then EDQUOT"
run "$objects" rc=2 close rc=2
is "closing a device with live queues frees nothing on rxe, where they stay mapped" "$out" "rc: 2 of 2
rc: 0 of 2, then EDQUOT"
run "$objects" rc=2 drop=rc close rc=2
is "closing a device without them does" "$out" "rc: 2 of 2
drop rc: 2
rc: 2 of 2"

policy <<< 'version = 1
[tenant.default.rxe0]
pd = 3
cq = 3
mr = 2
mr_bytes = "1MiB"
cqe = 200
send_wr = 20
srq = 1
ah = 1'
run "$objects" pd=5
is "pd (one is the program's own)" "$out" "pd: 2 of 5, then EDQUOT"
run "$objects" cq=5
is "cq" "$out" "cq: 2 of 5, then EDQUOT"
run "$objects" cqx=5
is "cq by create_cq_ex" "$out" "cqx: 2 of 5, then EDQUOT"
run "$objects" mr=5
is "mr" "$out" "mr: 2 of 5, then EDQUOT"
run "$objects" mr=1:1048577
is "mr_bytes: a byte too many" "$out" "mr: 0 of 1, then EDQUOT"
has "the denial shows sizes with units" "$log" "uses 0 of 1 MiB"
run "$objects" mr=1:1048576 mr=1:1
is "mr_bytes: exactly full" "$out" "mr: 1 of 1
mr: 0 of 1, then EDQUOT"
run "$objects" rc=3
is "send_wr: 8 each" "$out" "rc: 2 of 3, then EDQUOT"
has "send_wr is named" "$log" "send_wr on rxe0 denied"
run "$objects" cq=1:100 resize=150 resize=100 cq=1:50
is "resize_cq moves the charge" "$out" "cq: 1 of 1
resize: EDQUOT
resize: ok
cq: 0 of 1, then EDQUOT"
# rxe has no rereg_mr, which no limit may hide; mlx5_test.sh has what moves the charge.
run "$objects" mr=1:4096 rereg=8192 rereg=2000000
is "rereg_mr, which rxe lacks, fails with the errno of a lacking op, whatever the limit" "$out" "mr: 1 of 1
rereg: EOPNOTSUPP
rereg: EOPNOTSUPP"
run "$objects" srq=2
is "srq" "$out" "srq: 1 of 2, then EDQUOT"
run "$objects" ah=2
is "ah" "$out" "ah: 1 of 2, then EDQUOT"

# --- per process, two processes, totals --------------------------------------------------------
policy <<< 'version = 1
[process."*"]
qp = 3
pd = 4
mr_bytes = "8KiB"
[tenant.default."*"]
qp = 4'
start "$objects" rc=5 wait
has "per process: 3 of 5" "$(cat running)" "rc: 3 of 5, then EDQUOT"
has "the process's own limit is named" "$(cat running)" "this process uses 3 of 3"
run "$objects" rc=5
is "two processes share the tenant's limit" "$out" "rc: 1 of 5, then EDQUOT"
has "--process in the hint" "$(cat running)" "rdmaquota set default rxe0 qp=4 --process"
run "$objects" pd=5
is "pd per process" "$out" "pd: 3 of 5, then EDQUOT"
run "$objects" mr=3
is "mr_bytes per process" "$out" "mr: 2 of 3, then EDQUOT"
proceed
policy <<< 'version = 1
[tenant.default.total]
qp = 1
[process.total]
mr = 1'
run "$objects" rc=2 mr=2
is "totals over devices" "$out" "rc: 1 of 2, then EDQUOT
mr: 1 of 2, then EDQUOT"

# --- live changes --------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
start "$objects" rc=5 wait rc=5 drop=rc
rdmaquota set rxe0 qp=4 > /dev/null
proceed
is "after a live set there is more" "$(grep -v -e denied -e waiting running)" "rc: 2 of 5, then EDQUOT
rc: 2 of 5, then EDQUOT
drop rc: 4"
start "$objects" rc=1 wait rc=2
policy <<< 'version = 1
[tenant.default."*"]
qp = 1'
proceed
is "a reload reaches running programs" "$(grep -v -e denied -e waiting running)" "rc: 1 of 1
rc: 0 of 2, then EDQUOT"

# --- what the device refuses ----------------------------------------------------------------------
policy <<< 'version = 1'
# Where everybody may read: a shell that is nobody's starts it.
chmod 755 "$work"
cp "$objects" everybodys_objects
run setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'ulimit -l 64; RDMAQUOTA_LOG_LEVEL=info exec "$0" mr=2:1048576' "$work/everybodys_objects"
is "a registration beyond RLIMIT_MEMLOCK" "$out" "mr: 0 of 2, then ENOMEM"
has "is told at info" "$log" "mr_bytes on rxe0 refused (ENOMEM) by the device or its driver"
has "and is an event" "$(rdmaquota events --kind refused_by_device | tail -n 1)" "rxe0 mr_bytes  1 MiB more asked, the tenant uses 0"
run rdmaquota explain
has "explain says what it may be" "$out" "memory lock: "
has "and what helps" "$out" "raise RLIMIT_MEMLOCK"
run setpriv --reuid=65534 --regid=65534 --clear-groups bash -c 'ulimit -l 64; exec rdmaquota explain -- "$0" mr=1:1048576' "$work/everybodys_objects"
has "explain runs a program" "$out" "mr_bytes on rxe0: the call itself failed (ENOMEM) for pid"
has "and says what it had pinned" "$out" "it had pinned 0 of 64 KiB that RLIMIT_MEMLOCK lets it pin"
# Each QP takes mappings of its own.
most=$(sysctl -n vm.max_map_count)
sysctl -q vm.max_map_count=300
run rdmaquota explain -- "$objects" rc=400
sysctl -q vm.max_map_count="$most"
has "a program that may map no more is told so" "$out" "mappings: "
pids=()
for _ in 1 2 3; do
    (ulimit -l 64; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$work/everybodys_objects" mr=1:1048576) > /dev/null 2>&1 &
    pids+=($!)
done
wait "${pids[@]}"
told=$(rdmaquota explain --json)
is "of several that were refused at once it tells of all" \
    "$(for pid in "${pids[@]}"; do grep -o "for pid $pid " <<< "$told" | sort -u; done | wc -l)" 3

# --- modes ------------------------------------------------------------------------------------------
policy <<< 'version = 1
mode = "audit"
[tenant.default."*"]
qp = 2'
run "$objects" rc=5
is "audit denies nothing" "$out" "rc: 5 of 5"
has "audit logs what it would deny" "$log" "qp on rxe0 would be denied (audit)"
is "every would-be denial is counted" "$(rdmaquota events --json --kind would_deny | tail -n 1 | sed "s/.*\"count\":\([0-9]*\).*/\1/")" 3
policy <<< 'version = 1
mode = "off"
[tenant.default."*"]
qp = 0'
run "$objects" rc=5
is "off neither denies nor logs" "$out$log" "rc: 5 of 5"
policy <<< 'version = 1
deny_errno = "EAGAIN"
[tenant.default."*"]
qp = 0'
run "$objects" rc=1
is "deny_errno is the administrator's choice" "$out" "rc: 0 of 1, then EAGAIN"
policy <<< 'version = 1
[log]
target = "file"
file = "'"$work"'/denials.log"
[tenant.default."*"]
qp = 0'
run "$objects" rc=1
is "a log file instead of stderr" "$log" ""
has "the log file has the line" "$(cat denials.log)" "qp on rxe0 denied"

policy <<< 'version = 1
[log]
target = "syslog"
[tenant.default."*"]
qp = 0'
python3 -c '
import os, socket
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("/dev/log")
os.chmod("/dev/log", 0o666)
receiver.settimeout(20)
print(receiver.recv(4096).decode())' > syslog.out &
for _ in $(seq 100); do [ -S /dev/log ] && break; sleep 0.05; done
run "$objects" rc=1
wait $!
is "syslog instead of stderr" "$log" ""
has "the syslog has the line" "$(cat syslog.out)" "rdmaquota: qp on rxe0 denied (EDQUOT)"

# --- kills and forks ----------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
qp = 100'
start "$objects" rc=100 wait
is "100 QPs are in use" "$(usage_of qp)" 100
kill -9 "$program"
wait "$program" 2> /dev/null
exec 9>&-
is "kill -9, and usage is back at zero" "$(usage_of qp)" 0
run "$objects" rc=100
is "the room is there again" "$out" "rc: 100 of 100"
start "$programs/forker"
is "a forked child that opens the device has its own account" "$(usage_of qp)" 5
kill -9 "$(sed -n 's/^child //p' running)"
for _ in $(seq 100); do grep -q "child gone" running && break; sleep 0.05; done
is "its death uncharges its part, not its parent's" "$(usage_of qp)" 2
proceed
is "and the parent's end the rest" "$(usage_of qp)" 0
start unshare --pid --fork "$programs/forker" nested
is "so has a child that is pid 1 as its parent is" \
    "$(rdmaquota show --json | grep -o '"qp":{"usage":[0-9]*' | sort | tr '\n' ' ')" \
    '"qp":{"usage":2 "qp":{"usage":3 "qp":{"usage":5 '
echo >&9
for _ in $(seq 100); do grep -q "child gone" running && break; sleep 0.05; done
is "its death uncharges its part" "$(usage_of qp)" 2
proceed

# --- threads that are cancelled --------------------------------------------------------------------
policy <<< 'version = 1
[process."*"]
pd = 3'
run "$programs/cancelled" pending
is "a thread whose cancellation is pending is denied, and ends afterwards" "$out" "denied: EDQUOT
2 more, thread cancelled
closed"
run "$programs/cancelled" asynchronous
is "one that is cancelled in the middle of a denial ends after it" "$out" "2 more, thread cancelled
closed"
run "$programs/cancelled" kernel
is "one that is cancelled in the real provider ends there" "$out" "0 more, thread cancelled
closed"

# --- locks on the device file ------------------------------------------------------------------------
policy <<< 'version = 1
[process."*"]
hca_handle = 2
pd = 5'
spin_lock='import fcntl, sys
file = open(sys.argv[1], "r+b", buffering=0)
while True:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    except OSError:
        pass'
setpriv --reuid=65534 --regid=65534 --clear-groups /usr/bin/python3 -c "$spin_lock" /dev/infiniband/uverbs0 &
spinner=$!
steps=()
for _ in $(seq 300); do steps+=(ctx=1 drop=ctx); done
run "$objects" "${steps[@]}"
succeeds "the lock of somebody else was there all the time" kill "$spinner"
wait "$spinner" 2> /dev/null
is "somebody's lock of the device file that comes and goes denies nobody" "$(sort -u <<< "$out")" "ctx: 1 of 1
drop ctx: 1"
run "$programs/lock_keeper" 20
is "a program that locks its own duplicates keeps no more contexts than it may have" "$out" "2 of 20, then EDQUOT"

# --- too little address space -----------------------------------------------------------------------
policy <<< 'version = 1
on_unavailable = "deny"'
# shellcheck disable=SC2016 # expanded by the inner shell
run sh -c 'ulimit -v 100000; exec "$1" pd=1' sh "$objects"
is "with too little address space for the ledger nothing is admitted under on_unavailable=deny" "$out" "open: EDQUOT"
has "and the line names the limit" "$log" "raise this program's RLIMIT_AS (ulimit -v)"

# --- the kernel's own numbers ---------------------------------------------------------------------
mkdir /sys/fs/cgroup/probe
start sh -c 'echo $$ > /sys/fs/cgroup/probe/cgroup.procs; exec "$@"' sh "$objects" rc=7 pd=3 mr=5 srq=2 ah=2 ctx=2 wait
current=$(cat /sys/fs/cgroup/probe/rdma.current)
is "hca_handle and hca_object are the kernel's" \
    "rxe0 hca_handle=$(usage_of hca_handle) hca_object=$(usage_of hca_object)" "${current% }"
proceed

# --- unchanged programs ---------------------------------------------------------------------------
policy <<< 'version = 1
[process."*"]
qp = 1000'
address=192.168.77.1
succeeds "ibv_devinfo" ibv_devinfo
pingpong() {
    ibv_rc_pingpong -d rxe0 -g 1 -n 100 > server.out 2>&1 &
    local server=$!
    until_listening 18515
    timeout 30 ibv_rc_pingpong -d rxe0 -g 1 -n 100 $address 2>&1
    local result=$?
    [ $result = 0 ] || kill $server 2> /dev/null
    wait $server && return $result
}
succeeds "ibv_rc_pingpong" pingpong
bandwidth() {
    ib_send_bw -d rxe0 -x 1 -n 100 > server.out 2>&1 &
    local server=$!
    until_listening 18515
    timeout 60 ib_send_bw -d rxe0 -x 1 -n 100 $address 2>&1 && wait $server
}
# Each side measures its clock and gives up when a busy host makes that uneven.
bandwidth_at_last() {
    local output
    for _ in {1..10}; do
        output=$(bandwidth) && return
        output+=$(cat server.out)
        [[ $output == *"Correlation coefficient"* ]] || break
    done
    echo "$output"
    return 1
}
succeeds "ib_send_bw" bandwidth_at_last
# The data of each ping is compared by the client. How the two end is left to them: while a connection goes down, either may
# take the last completion for an error, and say so by its status.
rdma_ping() {
    timeout 60 rping -s -C 3 -v -a $address > server.out 2>&1 &
    local server=$!
    until_listening_by_cm 7174
    timeout 30 rping -c -C 3 -v -V -a $address
    wait $server
}
run rdma_ping
is "rping's client compares three pings" "$(grep -c '^ping data: ' <<< "$out")" 3
is "and its server sees them" "$(grep -c '^server ping data: ' server.out)" 3
rdmaquota set rxe0 qp=0 > /dev/null
run ibv_rc_pingpong -d rxe0 -g 1 $address
is "ibv_rc_pingpong under qp=0 fails" "$([ $status != 0 ] && echo failed)" failed
has "and says why" "$log" "qp on rxe0 denied (EDQUOT): tenant default uses 0 of 0"
rping -s -C 1 -a $address > server.out 2>&1 &
server=$!
until_listening_by_cm 7174
run timeout 30 rping -c -C 1 -a $address
has "QPs of librdmacm are held to the quota" "$log" "qp on rxe0 denied"
kill $server 2> /dev/null
wait $server

# --- environment ----------------------------------------------------------------------------------
policy <<< 'version = 1'
run env RDMA_INTERCEPT_ENABLE=1 RDMA_INTERCEPT_ENABLE_QP_CONTROL=1 RDMA_INTERCEPT_MAX_QP_PER_PROCESS=2 "$objects" rc=3
is "the interceptor's variables still work" "$out" "rc: 2 of 3, then EDQUOT"
has "and the line says so" "$log" "the limit comes from an environment variable"
rdmaquota set rxe0 qp=2 --process > /dev/null
run env RDMAQUOTA_LIMIT=qp=5 RDMAQUOTA_DIR=/nonexistent "$objects" rc=3
is "the environment cannot loosen" "$out" "rc: 2 of 3, then EDQUOT"
has "a quota directory that is not there is said" "$log" "/nonexistent/policy"
cp "$objects" ./setuid_objects && chmod 4755 setuid_objects && chmod 755 "$work"
run setpriv --reuid=65534 --regid=65534 --clear-groups env RDMAQUOTA_LIMIT=qp=1 ./setuid_objects rc=3
is "a setuid program ignores its environment" "$out" "rc: 2 of 3, then EDQUOT"
run setpriv --reuid=65534 --regid=65534 --clear-groups "$objects" rc=3
is "an ordinary user is held to the policy" "$out" "rc: 2 of 3, then EDQUOT"
is "and is listed" "$(rdmaquota events --json | tail -n 1 | grep -c verbs_objects)" 1
run rdmaquota run --limit qp=1 -- "$objects" rc=3
is "run tightens an installed node's policy" "$out" "rc: 1 of 3, then EDQUOT"
"$objects" rc=3 > closed.out 2>&-
is "a program without stderr is served the same" "$(cat closed.out)" "rc: 2 of 3, then EDQUOT"

(exec 2> >(true); sleep 0.5; "$objects" rc=3 > pipe.out; echo $? > pipe.status)
is "a broken pipe as stderr kills nobody" "$(cat pipe.out pipe.status)" "rc: 2 of 3, then EDQUOT
1"
mkfifo full
exec 8<> full
dd if=/dev/zero of=full bs=65536 count=1 oflag=nonblock 2> /dev/null
timeout 20 "$objects" rc=3 > pipe.out 2> full
is "a stderr that nobody reads hangs nobody" "$?" 1
exec 8>&-
timeout 20 env RDMAQUOTA_LOG_FILE="$work/full" "$objects" rc=3 > pipe.out
is "nor does a log file that is a FIFO" "$?" 1
run env RDMAQUOTA_LOG_FILE=/nowhere/log "$objects" rc=3
has "a log file that cannot be written gives way to standard error" "$log" "rdmaquota: qp on rxe0 denied"
has "a port that the device lacks is warned of" "$(rdmaquota set rxe0/9 qp=1 2>&1 > /dev/null)" \
    "warning: device rxe0 has no port 9; the limit holds for nothing"
has "also in a policy" "$(printf 'version = 1\n[process."rxe0/7"]\nqp = 1\n' > port.toml
rdmaquota reload port.toml 2>&1)" "warning: device rxe0 has no port 7"

# --- what cannot be used ------------------------------------------------------------------------
policy <<< 'version = 1
on_unavailable = "deny"
[tenant.default."*"]
qp = 1'
truncate -s 5000 $default_ledger/ledger
run "$objects" rc=2
is "a truncated ledger under on_unavailable=deny denies everything" "$out" "open: EDQUOT"
has "and says what, where and what to do" "$log" "$default_ledger/ledger is no usable ledger: it has 5000 bytes"
policy <<< 'version = 1
[tenant.default."*"]
qp = 1'
truncate -s 5000 $default_ledger/ledger
run "$objects" rc=2
is "under on_unavailable=allow the program works" "$out" "rc: 2 of 2"
rdmaquota reload policy.toml > reload.out
has "a reload replaces the ledger that cannot be used" "$(cat reload.out)" \
    "it was moved to $default_ledger.unusable."
run "$objects" rc=2
is "and the policy holds again" "$out" "rc: 1 of 2, then EDQUOT"
start "$objects" rc=1 wait rc=5 drop=rc
truncate -s 0 $default_ledger/ledger
proceed
is "a program whose ledger is cut short goes on" "$(grep rc running)" "rc: 1 of 1
rc: 5 of 5
drop rc: 6"
is "and is told so once" "$(grep -c "$default_ledger was cut short while in use" running)" 1
policy <<< 'version = 1
on_unavailable = "deny"
[tenant.default."*"]
qp = 2'
start "$objects" rc=1 wait rc=5 drop=rc
truncate -s 0 $default_ledger/ledger
proceed
is "under on_unavailable=deny it gets nothing more" "$(grep rc running)" "rc: 1 of 1
rc: 0 of 5, then EDQUOT
drop rc: 1"
policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
start "$objects" rc=1 wait rc=5
: > $here_default/limits-5
proceed
is "a policy that is cut short goes on holding" "$(grep rc: running)" "rc: 1 of 1
rc: 1 of 5, then EDQUOT"
policy <<< 'version = 1
[tenant.default."*"]
qp = 1'
rm -rf $default_ledger
run setpriv --reuid=65534 --regid=65534 --clear-groups "$objects" rc=2
is "without a ledger an ordinary user's program works" "$out" "rc: 2 of 2"
has "and says who can make one" "$log" "run 'rdmaquota reload' as root to create it"
run "$objects" rc=2
is "root's program makes the ledger that is missing" "$out" "rc: 1 of 2, then EDQUOT"
chmod 600 $default_ledger/ledger
run setpriv --reuid=65534 --regid=65534 --clear-groups "$objects" rc=2
is "no permission: the program works" "$out" "rc: 2 of 2"
has "and the line names the file" "$log" "cannot open the ledger $default_ledger/ledger: Permission denied"
rm -rf $default_ledger
rdmaquota reload policy.toml > /dev/null
umount -l /dev/infiniband/rdmaquota
mount -t tmpfs none /run/rdmaquota
run "$objects" rc=2
is "no quota directory: the program works" "$out" "rc: 2 of 2"
has "and the line says what, where and what to do" "$log" \
    "cannot use the policy /run/rdmaquota/policy-5: No such file or directory; run 'rdmaquota reload' as root to write it"
umount /run/rdmaquota
run unshare --mount sh -c 'mount -t tmpfs none /run && exec "$0" rc=2' "$objects"
is "a node without a quota directory was never set up: the program works" "$out" "rc: 2 of 2"
is "and there is nothing to tell it" "$log" ""
printf 'garbage' > /run/rdmaquota/policy-5
run "$objects" rc=2
is "a broken policy segment: the program works" "$out" "rc: 2 of 2"
has "and the line says how to mend it" "$log" "cannot use the policy /run/rdmaquota/policy-5: "
rdmaquota reload policy.toml > /dev/null
run "$objects" rc=2
is "a reload mends it" "$out" "rc: 1 of 2, then EDQUOT"
printf 'version = 1\nmode = "strict"\n' > bad.toml
run rdmaquota reload bad.toml
is "a bad policy is refused" "$status" 1
has "with file, line and column" "$log" "bad.toml:2:"
run "$objects" rc=2
is "and the running policy stays" "$out" "rc: 1 of 2, then EDQUOT"

# --- the provider as a guest ------------------------------------------------------------------------
directory=$real_dir/libibverbs
for pabi in 34 57 59 64 65; do
    succeeds "the provider's stub for PABI $pabi" test -f "$directory/librdmaquota-rdmav$pabi.so"
done
is "it needs libc and the loader only" \
    "$(ldd "$directory/librdmaquota.so" | awk '{print $1}' | grep -v -e vdso -e libc.so -e ld-linux)" ""
is "it exports what its stubs call" "$(nm -D --defined-only "$directory/librdmaquota.so" | awk '$2 != "A" { print $3 }')" \
    "rdmaquota_adopt@@RDMAQUOTA_PROVIDER"
with=$("$programs/data_path")
mv /etc/libibverbs.d/rdmaquota.driver .
is "data-path functions are the real provider's own" "$with" "$("$programs/data_path")"
has "in the real provider's library" "$with" "post_send: librxe-rdmav34.so"
run "$objects" rc=3
is "without the .driver file nothing is limited" "$out" "rc: 3 of 3"
mv rdmaquota.driver /etc/libibverbs.d/

# A libibverbs of a private ABI that has no provider of ours: it differs in the names of the files that it loads.
LC_ALL=C sed 's/-rdmav34\.so/-rdmav99.so/' "$real_dir/libibverbs.so.1" > libibverbs.so.1
cp "$directory/librxe-rdmav34.so" "$directory/librxe-rdmav99.so"
start env LD_LIBRARY_PATH="$work" "$objects" rc=3 wait
has "a program with a libibverbs that is not known is held to nothing" "$(cat running)" "rc: 3 of 3"
has "which explain says" "$(rdmaquota explain --pid "$program")" "not covered: library: $directory/librxe-rdmav99.so"
proceed
rm "$directory/librxe-rdmav99.so"

finish
