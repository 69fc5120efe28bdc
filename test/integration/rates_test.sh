#!/bin/bash
# rates_test.sh BUILD: rates delay calls and deny what would wait too long: by tenant and process, per device and in all, commands and
# bytes; nothing is lost when a waiting program is killed, stopped or signalled. Runs as root in the guest after an installation.
# "Took at least" is a bound that a slow machine cannot miss.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
objects=$programs/verbs_objects

# took COMMAND...: milliseconds in $took, its output in $out
took() {
    local begin
    begin=$(date +%s%3N)
    run "$@"
    took=$(($(date +%s%3N) - begin))
}
# delays RATE: how many calls it delayed
delays() { rdmaquota show --json | python3 -c 'import json, sys
print(sum(r["delayed_calls"] for t in json.load(sys.stdin)["tenants"] for r in t["rates"] if r["rate"] == sys.argv[1]))' "$1"; }
at_least() { is "$1" "$(($3 >= $2))" 1 || echo "# $3 is less than $2"; }

# --- bytes: one a second, so that nothing comes back while this runs
policy << END
version = 1
[tenant.default."*"]
registered_per_s = { limit = 1, burst = 8192 }
END
run "$objects" mr=3:4096
is "as much as the burst is registered" "$out" "mr: 2 of 3 EDQUOT"
has "the line says why" "$log" "registered_per_s on $device denied (EDQUOT): tenant default may have 1 a second, and pid"
has "and what an administrator can do" "$log" "rdmaquota set $device registered_per_s=4KiB"
run "$objects" mr=1:1
is "the burst is the tenant's, not the process's" "$out" "mr: 0 of 1 EDQUOT"
run "$objects" mr=1:0 pd=3
lacks "what pins nothing is not delayed" "$out" "EDQUOT"
has "the event" "$(rdmaquota events --json | grep registered_per_s | tail -1)" '"kind":"denied"'
finish
