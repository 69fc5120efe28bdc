#!/bin/bash
# guard_takeover_test.sh BUILD: the guard when its sidecar ends, is killed, stopped or replaced: no gap, nothing forgotten, and
# off when it is told so. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
pins=/sys/fs/bpf/rdmaquota
pinned() { find $pins -mindepth 1 -maxdepth 1 2> /dev/null | wc -l; }
ask_for() { "$programs/raw_uverbs" ioctl "$1" < /dev/null 2>&1 | head -n 1; }
die() { kill -9 "$sidecar"; wait "$sidecar" 2> /dev/null; }
# Makes what is pinned look like another version's.
age() { mv "$(find $pins -mindepth 1 -maxdepth 1 | head -n 1)" $pins/another; }
looks() { /usr/sbin/bpftool prog | grep -c ' name on_ioctl'; }
until_no_looks() { eventually "no program of the guard is left" prints 0 looks; }

guard_policy deny 5 > policy.toml
cat >> policy.toml << 'END'
[tenant.jobs]
match = [{ cgroup = "/jobs/**", members = ["*"] }]
END
rdmaquota reload policy.toml > /dev/null

# --- ready means that it holds
cat > ready.py << 'END'
import os, socket, subprocess, sys
ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ready.bind("ready")
child = subprocess.Popen(["rdmaquotad"], env=dict(os.environ, NOTIFY_SOCKET=os.path.abspath("ready")), stderr=subprocess.DEVNULL)
while b"READY=1" not in ready.recv(4096):
    pass
print(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.splitlines()[0])
child.kill()
child.wait()
END
is "once the sidecar says that it is ready, the limits hold" "$(/usr/bin/python3 ready.py "$programs/raw_uverbs" ioctl 10)" "pd: 5 of 10 EDQUOT"

# --- a successor of the same version
start_sidecar
guard_is deny
"$programs/around" again 10 < <(until [ -e go ]; do pause 0.1; done; echo; pause 1; echo) > poisoned 2>&1 &
poisoned=$!
waits poisoned
is "what was made around it counts" "$(counted default pd)" 6
ask_for 1 > /dev/null
refused=$(counted default pd refused)
kept=$(ls $pins)
die
is "without a sidecar a tenant above its limit opens nothing more" "$(ask_for 10)" "raw_uverbs: Disk quota exceeded"
has "an ordinary user is not told that it is off" "$( (become 65534 rdmaquota guard) 2>&1)" "only root sees whether the kernel keeps the guard"
succeeds "without a sidecar a limit can be set" rdmaquota set "$device" pd=8
is "and holds" "$(ask_for 10)" "pd: 2 of 10 EDQUOT"
mkdir -p /sys/fs/cgroup/job1
succeeds "a tenant can be made" rdmaquota tenant add job1 --user daemon --limit pd=3
sh -c 'echo $$ > /sys/fs/cgroup/job1/cgroup.procs; exec sleep infinity' &
job=$!
eventually "the job is in its cgroup" grep -q . /sys/fs/cgroup/job1/cgroup.procs
echo "{\"pid\": $job}" > state
succeeds "a container can be bound to it" sh -c 'exec rdmaquota tenant bind job1 < state'
# shellcheck disable=SC2016 # expanded by the inner shell
is "and is held to its limit" "$(sh -c 'echo $$ > /sys/fs/cgroup/job1/cgroup.procs; exec "$0" ioctl 10 < /dev/null' "$programs/raw_uverbs" | head -n 1)" "pd: 3 of 10 EDQUOT"
kill "$job"
rdmaquota set "$device" pd=20 > /dev/null
start_sidecar
is "a successor takes over what was pinned" "$(ls $pins)" "$kept"
is "at once" "$(state)" deny
is "with the figures" "$(counted default pd), $([ "$(counted default pd refused)" -ge "$refused" ] && echo yes)" "6, yes"
touch go
wait $poisoned
has "and an open file that may make nothing more makes nothing more" "$(cat poisoned)" "again: EDQUOT"
rdmaquota unset "$device" pd > /dev/null
until_counted default pd 0

# --- a successor of another version
hammer() { while [ ! -e enough ]; do ask_for 10; done > hammered; }
# until_pinning: until something is pinned beside `another`, or in its place, which it may be before anybody looks
until_pinning() { eventually "something is pinned" pinning; }
pinning() {
    local there=("$pins"/*)
    [ "${there[*]}" != "$pins/another" ]
}
die
age
hammer &
hammering=$!
start_sidecar
guard_is deny
touch enough
wait $hammering
is "another version takes over without a gap, and refuses nobody wrongly" "$(sort -u hammered)" "pd: 5 of 10 EDQUOT"
is "and is the only one then" "$(pinned) $(test -e $pins/another && echo another)" "1 "
for delay in 0 0.02 0.1 0.3; do
    die
    age
    rdmaquotad 2>> sidecar.log &
    sidecar=$!
    until_pinning
    pause $delay
    die
    is "killed $delay s after it began to pin, one that refuses is left" "$(ask_for 10), $([ "$(pinned)" -ge 1 ] && echo pinned)" "pd: 5 of 10 EDQUOT, pinned"
    start_sidecar
    guard_is deny
    is "and the next one is the only one" "$(pinned), $(ask_for 10)" "1, pd: 5 of 10 EDQUOT"
done

# --- off
kill -STOP "$sidecar"
has "guard off while the sidecar is stopped" "$(rdmaquota guard off)" "out of the kernel"
is "holds at once" "$(ask_for 10)" "pd: 10 of 10"
kill -CONT "$sidecar"
is "and stays when it goes on" "$(ask_for 10), $(state)" "pd: 10 of 10, off"
until_no_looks
is "then no program of the guard is in the kernel" "$(looks), $(test -e $pins && echo pins)" "0, "
rdmaquota reload policy.toml > /dev/null
guard_is deny
die
rdmaquota guard off > /dev/null
until_no_looks
is "nor when the sidecar was gone" "$(looks), $(test -e $pins && echo pins)" "0, "
finish
