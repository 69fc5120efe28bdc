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
cp "$programs/raw_uverbs" "$work"
cp "$programs/verbs_objects" "$work/objects"
chmod 755 "$work"
ask_for() { "$work/raw_uverbs" ioctl "$1" < /dev/null 2>&1 | head -n 1; }
ask_as() { (become "$1" "$work/raw_uverbs" ioctl "$2") < /dev/null 2>&1 | head -n 1; }
# hold N: around the library, until `drop`
hold() {
    "$work/raw_uverbs" ioctl "$1" < forever > held 2>&1 &
    holder=$!
    waits held
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
followed
run "$programs/verbs_objects" pd=1
has "so is a device that cannot be opened" "$log" "hca_handle on $device denied (EDQUOT) by the guard in the kernel"
rdmaquota unset "$device" hca_handle > /dev/null
drop
settings 'deny_errno = "ENOMEM"'
followed
hold 3
run "$programs/verbs_objects" pd=4
has "also with another errno" "$log" "pd on $device denied (ENOMEM) by the guard in the kernel, or by the device, although the ledger has room"
drop
settings

# --- events
# event_of OPTION...: the last such event, which may come a moment later
has_event() { event=$(rdmaquota events --json "$@" | tail -n 1) && [ "$event" ]; }
event_of() {
    local event=''
    eventually "an event of $*" has_event "$@"
    echo "$event"
}
known become 65534
is "a user is refused" "$(ask_as 65534 8)" "pd: 5 of 8 EDQUOT"
event=$(event_of --kind refused --user nobody)
has "a refusal's event has the user" "$event" '"uid":65534'
has "and how much was asked for" "$event" '"requested":1'
has "the process" "$event" '"comm":"raw_uverbs"'
"$work/raw_uverbs" unread 8 < /dev/null > /dev/null 2>&1
event=$(event_of --kind exceeded)
has "what was made around the look is an event" "$event" '"resource":"pd"'
has "with the tenant" "$event" '"tenant":"default"'
has "the killed one's has the device" "$(event_of --kind killed)" "\"device\":\"$device\""
has "show says what the guard does" "$(rdmaquota show)" "the guard is on: the kernel refuses what exceeds a limit"
has "and what it refused" "$(rdmaquota show default)" "the guard refused "

# --- tenants by a group, and such as come and go
{
    guard_policy deny 5
    printf '[tenant.players]\nmatch = [{ group = "games" }]\n[tenant.players."*"]\npd = 2\n'
} > policy.toml
rdmaquota reload policy.toml > /dev/null
followed
a_player() { exec setpriv --reuid=65533 --regid=65533 --groups="$(getent group games | cut -d: -f3)" "$@"; }
known a_player
is "a tenant may be one's supplementary group's" "$( (a_player "$work/raw_uverbs" ioctl 8) < /dev/null 2>&1 | head -n 1)" "pd: 2 of 8 EDQUOT"
rdmaquota tenant add job7 --user daemon --limit pd=3 > /dev/null
followed
known become 1
is "a tenant that is made while the guard is on has its limits" "$(ask_as 1 8)" "pd: 3 of 8 EDQUOT"
rdmaquota tenant remove job7 > /dev/null
followed
known become 1
is "when it is removed, its user has another's" "$(ask_as 1 8)" "pd: 5 of 8 EDQUOT"

# --- the tenant of a job, which is made while nobody runs in it
{ guard_policy deny 5; printf '[slurm.job."*"]\npd = 1\n'; } > policy.toml
rdmaquota reload policy.toml > /dev/null
followed
job=/sys/fs/cgroup/test.slice/slurmstepd.scope/job_7/step_0
mkdir -p $job
# shellcheck disable=SC2016 # expanded by the inner shell
in_job() { exec sh -c 'echo $$ > "$0/cgroup.procs" && exec setpriv --reuid=1 --regid=1 --clear-groups "$@"' $job "$@"; }
rdmaquota slurm begin 7 --user daemon --account physics > /dev/null
in_job "$work/raw_uverbs" ioctl 0 < forever > known 2>&1 &
opener=$!
waits known
followed
is "a job's first process is in its tenant at once" "$(counted slurm/physics/job-7 hca_handle), $(counted default hca_handle)" "1, 0"
kill $opener
wait $opener 2> /dev/null

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
eventually "the sidecar follows the policy" prints "pd: 8 of 8" ask_as 65534 8
is "a tenant whose mode is off is exempt, also from the node's limit" "$(ask_as 65534 8)" "pd: 8 of 8"
is "others are not" "$(ask_for 8)" "pd: 2 of 8 EDQUOT"
start unlisted setpriv --reuid=65534 --regid=65534 --clear-groups "$work/objects" pd=3 wait pd=9 wait
sed -i '/^mode = "off"/d' policy.toml
rdmaquota reload policy.toml > /dev/null
followed
proceed
has "once its mode is another, what is open is not exempt any more" "$(cat running)" "pd: 0 of 9, then EDQUOT"
rdmaquota guard off > /dev/null
rdmaquota tenant add job8 --user daemon > /dev/null
followed
is "a guard that was taken out stays out when a tenant is made" "$(state)" off
rdmaquota reload policy.toml > /dev/null
guard_is deny
stop_sidecar
rdmaquota guard off > /dev/null
echo 'version = 1' > policy.toml
rdmaquota reload policy.toml > /dev/null
has "where the policy asks for none, doctor says whether there could be one" "$(rdmaquota doctor)" "off; this kernel could have it"
has "and if not, why" "$(unshare --pid --fork --mount-proc rdmaquota doctor)" "off; it could not be had here: this is a pid namespace of its own"
finish
