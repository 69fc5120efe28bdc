#!/bin/bash
# percentages_test.sh BUILD: limits in percent of what a device has: held by the provider without a daemon and by the guard, also on a
# device that comes; shown as amount and as percentage; set, saved and reloaded. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
objects=$programs/verbs_objects
raw=$programs/raw_uverbs
max_pd=$(bare ibv_devinfo -v -d "$device" | awk '$1 == "max_pd:" { print $2 }')
# The least percentage, of which a program can create all; verbs_objects has a PD of its own besides.
share=$((max_pd / 1000)) more=$((max_pd / 1000 + 9))
objects_have=$((share - 1))
echo "# max_pd $max_pd, 0.1% of it $share"
# cell TENANT MEMBER: of its PDs on the device
cell() {
    rdmaquota show "$1" --json | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["tenants"][0]["devices"].get(sys.argv[1], {}).get("pd", {}).get(sys.argv[2], ""))' "$device" "$2"
}
creates() { "$@" 2> /dev/null | grep -o '^pd: [0-9]* of'; }

# --- without a daemon
policy << 'POLICY'
version = 1
[tenant.default."*"]
pd = "0.1%"
[sidecar]
guard = "deny"
POLICY
is "reload resolves it, without a daemon" "$(cell default limit) $(cell default percent)" "$share 0.1"
has "show has both" "$(rdmaquota show)" "$share (0.1%)"
has "which has both" "$(rdmaquota which)" "$share (0.1%)"
limits=$(rdmaquota show --limits)
has "show --limits has it for each device" "$(grep ' pd ' <<< "$limits" | xargs)" "* pd 0.1% policy"
has "and its amount for one" "$(grep " $device .*pd" <<< "$limits" | xargs)" "$device pd $share (0.1%) policy"
is "the provider holds it" "$(creates "$objects" pd=$more)" "pd: $objects_have of"
another_device rxe_new
is "also on a device that nobody resolved" "$(creates "$objects" -d rxe_new pd=$more)" "pd: $objects_have of"
no_device rxe_new
start "$objects" wait pd=$more
rdmaquota set "$device" pd=3 > /dev/null
proceed
is "a program that is running follows an amount that is set" "$(grep -o '^pd: [0-9]* of' running)" "pd: 2 of"
start "$objects" wait pd=$more
has "a percentage that is set says what it is" "$(rdmaquota set "$device" pd=0.1%)" "3 -> 0.1% (tenant default); $share in force"
proceed
is "and is followed" "$(grep -o '^pd: [0-9]* of' running)" "pd: $objects_have of"
run rdmaquota set "$device" flow=1%
has "what no device reports cannot be limited so" "$status $log" "2 rdmaquota: flow cannot be limited in percent"

# --- in the file
cp policy.toml saved.toml
rdmaquota set "$device" all=50% pd=7 --persist --file saved.toml > /dev/null
has "all is saved for each resource" "$(cat saved.toml)" 'mr_bytes = "50%"'
rdmaquota reload saved.toml > /dev/null
is "and reloaded, but for what is named" "$(creates "$objects" pd=$more)" "pd: 6 of"
is "of the node's memory" "$(rdmaquota show --limits | awk -v d="$device" '$3 == d && $4 == "mr_bytes" { print $7 }')" "(50%)"

# --- with the guard
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
is "the guard holds it" "$(creates "$raw" ioctl $more)" "pd: $share of"
another_device rxe_late
late_holds() { creates env UVERBS="$file" "$raw" ioctl $more; }
eventually "also on a device that comes" prints "pd: $share of" late_holds
is "also on a device that comes" "$(late_holds)" "pd: $share of"
no_device rxe_late
rdmaquota set '*' pd=0.2% > /dev/null
holds_twice() { creates "$raw" ioctl $((2 * more)); }
eventually "the guard follows a percentage that is set" prints "pd: $((max_pd * 2 / 1000)) of" holds_twice
is "the guard follows a percentage that is set" "$(holds_twice)" "pd: $((max_pd * 2 / 1000)) of"
rdmaquota tenant add job --limit all=0.1% > /dev/null
is "a transient tenant has one" "$(cell job limit) $(cell job percent)" "$share 0.1"
rdmaquota tenant remove job > /dev/null
stop_sidecar
rdmaquota guard off > /dev/null
finish
