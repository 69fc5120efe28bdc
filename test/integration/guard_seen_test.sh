#!/bin/bash
# guard_seen_test.sh BUILD: what programs and administrators are told of the guard, and whom it spares. Runs as root in the guest
# after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
cp "$programs/raw_uverbs" "$work/raw"
chmod 755 "$work"
ask_for() { "$work/raw" ioctl "$1" < /dev/null 2>&1 | head -n 1; }
ask_as() { setpriv --reuid="$1" --regid="$1" --clear-groups "$work/raw" ioctl "$2" < /dev/null 2>&1 | head -n 1; }
# hold N: around the library, until `drop`
hold() {
    "$work/raw" ioctl "$1" < <(sleep 120) > held 2>&1 &
    holder=$!
    until grep -q waiting held; do sleep 0.05; done
}
drop() { kill $holder; wait $holder 2> /dev/null; until_counted default pd 0; }
settings() { # LINE...: of the policy's top, before [sidecar]
    { echo 'version = 1'; printf '%s\n' "$@"; guard_policy deny 5 | tail -n +2; } > policy.toml
    rdmaquota reload policy.toml > /dev/null
}
settings
start_sidecar
guard_is deny

# --- programs with the library
hold 3
run "$programs/verbs_objects" pd=4
has "a creation that the guard refuses is said to be around the library" "$log" \
    "pd on $device denied (EDQUOT) by the guard in the kernel, although the ledger has room: the rest is in use around the library"
rdmaquota set "$device" hca_handle=1 > /dev/null
sleep 1
run "$programs/verbs_objects" pd=1
has "so is a device that cannot be opened" "$log" "hca_handle on $device denied (EDQUOT) by the guard in the kernel"
rdmaquota unset "$device" hca_handle > /dev/null
drop
settings 'deny_errno = "ENOMEM"'
sleep 1
hold 3
run "$programs/verbs_objects" pd=4
has "also with another errno" "$log" "pd on $device denied (ENOMEM) by the guard in the kernel, or by the device, although the ledger has room"
drop
settings

# --- events
ask_as 65534 8 > /dev/null
sleep 1
rdmaquota events --json --kind refused | tail -n 3 | sed 's/^/# /'
event=$(rdmaquota events --json --kind refused --user nobody | tail -n 1)
has "a refusal's event has the user" "$event" '"uid":65534'
has "and how much was asked for" "$event" '"requested":1'
"$work/raw" write 8 < /dev/null > /dev/null 2>&1
sleep 1
event=$(rdmaquota events --json --kind exceeded | tail -n 1)
has "what was made around the look is an event" "$event" '"resource":"pd"'
has "with the tenant" "$event" '"tenant":"default"'
has "the killed one's has the device" "$(rdmaquota events --json --kind killed | tail -n 1)" "\"device\":\"$device\""
has "show says what the guard does" "$(rdmaquota show)" "the guard is on: the kernel refuses what exceeds a limit"

# --- whom it spares
cat > policy.toml << 'END'
version = 1
[sidecar]
guard = "deny"
[node."*"]
pd = 2
[tenant.daemons]
match = [{ user = "nobody" }]
mode = "off"
END
rdmaquota reload policy.toml > /dev/null
# The sidecar follows the policy within a second, when it has a processor.
for _ in $(seq 20); do [ "$(ask_as 65534 8)" != "pd: 8 of 8" ] || break; sleep 0.5; done
is "a tenant whose mode is off is exempt, also from the node's limit" "$(ask_as 65534 8)" "pd: 8 of 8"
is "others are not" "$(ask_for 8)" "pd: 2 of 8 EDQUOT"
stop_sidecar
rdmaquota guard off > /dev/null
finish
