#!/bin/bash
# rates_test.sh BUILD: rates delay calls and deny what would wait too long: of tenants and processes, per device and in all, commands and
# bytes; nothing is lost when a waiting program is killed, stopped or signalled. Runs as root in the guest after an installation.
# That something took at least so long is a bound that a slow machine cannot miss.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
objects=$programs/verbs_objects

# took COMMAND...: milliseconds in $took, its output in $out
took() {
    local begin
    begin=$(date +%s%3N)
    run "$@"
    took=$(($(date +%s%3N) - begin))
}
# rate MEMBER RATE: of the tenant default on $device
rate() {
    rdmaquota show --json | python3 -c 'import json, sys
print(next(r[sys.argv[1]] for t in json.load(sys.stdin)["tenants"] if t["name"] == "default"
    for r in t["rates"] if (r["device"], r["rate"]) == tuple(sys.argv[2:])))' "$1" "$device" "$2"
}
# at_least NAME WANTED SEEN
at_least() { is "$1" "$([ "$3" -ge "$2" ] && echo yes || echo "$3 of $2")" yes; }

# --- bytes: so few a second that none come back while this runs
policy << END
version = 1
[tenant.default]
max_delay = "50ms"
[tenant.default."*"]
registered_per_s = { limit = 1, burst = 8192 }
END
run "$objects" mr=3:4096
is "as much as the burst is registered" "$out" "mr: 2 of 3, then EDQUOT"
has "the line says why" "$log" "registered_per_s on $device denied (EDQUOT): tenant default may have 1 a second, and pid"
has "and what allows it" "$log" "rdmaquota set $device registered_per_s=4KiB"
took "$objects" mr=1:4096
at_least "and the denial comes after the longest delay" 50 "$took"
is "the burst is the tenant's, not the process's" "$out" "mr: 0 of 1, then EDQUOT"
run "$objects" odp=1:4096 pd=3
lacks "what pins nothing is not limited" "$out$log" "registered_per_s"
event=$(rdmaquota events --json | grep registered_per_s | tail -1)
has "the event" "$event" '"kind":"denied","tenant":"default","pod":null,"device":"'"$device"'","resource":"registered_per_s","scope":"tenant"'
has "in words" "$(rdmaquota events | grep registered_per_s | tail -1)" "registered_per_s  1 a second allowed, 4 KiB asked"
rdmaquota set "$device" registered_per_s=1GiB > /dev/null
run "$objects" mr=2:4096
is "a larger rate holds at once" "$out" "mr: 2 of 2"
rdmaquota set "$device" registered_per_s=max > /dev/null
run "$objects" mr=3:4096
is "and none" "$out" "mr: 3 of 3"

# --- commands are delayed: a device, 45 PDs, of which the burst is free
policy << END
version = 1
[tenant.default]
max_delay = "30s"
[tenant.default."*"]
commands_per_s = { limit = 20, burst = 6 }
END
took "$objects" pd=45
is "all are made" "$out" "pd: 45 of 45"
at_least "slowly" 2000 "$took"
has "the program's log says it" "$log" "commands_per_s on $device: calls of pid"
has "by whose limit" "$log" "in all, since tenant default may have 20 a second"
at_least "calls were delayed" 1 "$(rate delayed_calls commands_per_s)"
at_least "for that long" 1000 "$(rate delayed_ms commands_per_s)"
event=$(rdmaquota events --json | grep '"delayed"' | tail -1)
has "one event tells of them" "$event" '"resource":"commands_per_s"'
at_least "with their number" 10 "$(sed 's/.*"count":\([0-9]*\).*/\1/' <<< "$event")"
is "it is one" "$(rdmaquota events --json | grep '"delayed"' | grep -c commands_per_s)" 1
has "show has the rate" "$(rdmaquota show | grep "$device.*commands_per_s" | xargs)" "$device commands_per_s 20 6"
has "and the limits" "$(rdmaquota show --limits | grep commands_per_s | xargs)" "* commands_per_s 20 policy burst 6"

# --- of a process; over all devices; set live
policy << END
version = 1
[tenant.default.process."*"]
commands_per_s = 5
[tenant.default.total]
registered_per_s = { limit = 1, burst = 4096 }
END
took "$objects" pd=14
at_least "a process has a rate, with the burst of a second" 1500 "$took"
run "$objects" mr=2:4096
is "a rate over all devices" "$out" "mr: 1 of 2, then EDQUOT"
has "is named so" "$log" "may have 1 a second over all devices"
run rdmaquota set "$device" commands_per_s=7 --soft
has "a rate has no soft limit" "$log" "commands_per_s is a rate and has no soft limit; set its --burst"
run rdmaquota set "$device" qp=7 --burst
has "and only a rate has a burst" "$log" "qp is no rate and has no burst"
run rdmaquota set "$device" commands_per_s=1000
has "set" "$out" "commands_per_s: max -> 1000"
run rdmaquota set "$device" commands_per_s=77 --burst
has "set a burst" "$out" "commands_per_s burst: max -> 77"
run rdmaquota unset "$device" commands_per_s --burst
has "and take it back" "$out" "commands_per_s burst: 77 -> max"

policy << END
version = 1
deny_errno = "EAGAIN"
[tenant.default."*"]
registered_per_s = { limit = 1, burst = 4096 }
END
run "$objects" mr=2:4096
is "registrations get no EAGAIN, which programs repeat without end" "$out" "mr: 1 of 2, then EDQUOT"
policy << END
version = 1
[tenant.default."*"]
commands_per_s = 0
END
run "$objects" pd=1
has "nothing at all is possible without commands" "$log" "commands_per_s on $device denied (EDQUOT): tenant default may have 0 a second"

# --- an audit delays nothing
policy << END
version = 1
mode = "audit"
[tenant.default."*"]
registered_per_s = { limit = 1, burst = 1 }
END
run "$objects" mr=3:4096
is "an audit denies nothing" "$out" "mr: 3 of 3"
has "and tells what would be" "$log" "registered_per_s on $device would be denied (audit)"

# --- a program that waits: killed, stopped, signalled
policy << END
version = 1
[tenant.default]
max_delay = "60s"
[tenant.default."*"]
commands_per_s = { limit = 1, burst = 2 }
END
"$objects" pd=9 > waiting 2>&1 < forever &
waiter=$!
# by clock_nanosleep(2)
sleeps() { grep -q '^230 ' "/proc/$waiter/syscall"; }
eventually "it waits for its turn" sleeps
kill -STOP $waiter
eventually "it is stopped" grep -q 'State:.T' "/proc/$waiter/status"
rdmaquota set "$device" commands_per_s=1000 > /dev/null
run "$objects" pd=3
is "a stopped program that waits delays nobody for longer than its part" "$out" "pd: 3 of 3"
kill -KILL $waiter
wait $waiter 2> /dev/null
run "$objects" pd=3
is "nor does a killed one" "$out" "pd: 3 of 3"
is "nothing of it is in use" "$(usage_of pd)" 0

# --- a rate of the node is divided among tenants: by weight without a sidecar, with one among those that have a device open
shared='version = 1
[sidecar]
[node."*"]
commands_per_s = 400
[tenant.one]
match = [{ cgroup = "/one", members = ["*"] }]
weight = 300
[tenant.two]
match = [{ cgroup = "/two", members = ["*"] }]'
policy <<< "$shared"
# in_force TENANT: the rate that it may have now
in_force() {
    rdmaquota show "$1" --json | python3 -c 'import json, sys
print(*[r["limit"] for t in json.load(sys.stdin)["tenants"] if t["name"] == sys.argv[1] for r in t["rates"] if (r["device"], r["rate"]) == (sys.argv[2], "commands_per_s")])' "$1" "$device"
}
is "three quarters of what is divided are one's, with the default tenant" "$(in_force one) $(in_force two) $(in_force default)" "240 80 80"
start_sidecar
mkdir -p /sys/fs/cgroup/one /sys/fs/cgroup/two
# in_tenant NAME COMMAND...
in_tenant() { sh -c 'echo $$ > "/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"' "$@"; }
in_tenant one "$objects" pd=1 wait > one.log 2>&1 < forever &
one=$!
waits one.log
has_all() { [ "$(in_force one)" = 400 ]; }
eventually "who is alone has all" has_all
in_tenant two "$objects" pd=1 wait > two.log 2>&1 < forever &
two=$!
waits two.log
is "who comes gets a device open" "$(head -n 1 two.log)" "pd: 1 of 1"
has_parts() { [ "$(in_force one) $(in_force two)" = "300 100" ]; }
eventually "and its part" has_parts
kill $one $two
wait $one $two 2> /dev/null
stop_sidecar
finish
