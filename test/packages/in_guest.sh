#!/bin/bash
# in_guest.sh BUILD OLD NEW: the main job from packages: those in OLD are installed, upgraded to those in NEW and removed,
# with programs that hold objects all the while. Runs as root in the guest, in a release's root file system in which what
# the packages depend on is installed; BUILD has the test programs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/integration/tap.sh
. "$here/../integration/tap.sh"
objects=$1/test/programs/verbs_objects
linked=$1/test/programs/verbs_objects_mlx5
raw=$1/test/programs/raw_uverbs
mount -t bpf bpf /sys/fs/bpf 2> /dev/null
mount -t securityfs securityfs /sys/kernel/security 2> /dev/null
cd /tmp || exit 1

install() { dpkg --force-confold -i "$1"/*.deb > dpkg.log 2>&1; }
# policy QPS [GUARD]: with a guard also 3 PDs
policy() {
    printf 'version = 1\n[tenant.default."*"]\nqp = %s\n' "$1" > /etc/rdmaquota/rdmaquota.toml
    [ $# = 1 ] || printf 'pd = 3\n[sidecar]\nguard = "%s"\n' "$2" >> /etc/rdmaquota/rdmaquota.toml
    rdmaquota reload > reload.log 2>&1 || not_ok "the policy is put in force" "$(cat reload.log)"
}
# hold STEP...: a program that makes these, and then waits until `let_go`
hold() {
    rm -f keys && mkfifo keys
    "$objects" "$@" wait rc=1 < keys > held.out 2>&1 &
    held=$!
    exec 5> keys
    for _ in $(seq 200); do grep -q waiting held.out && return; sleep 0.05; done
    not_ok "a program holds objects" "$(cat held.out)"
}
let_go() { echo >&5; exec 5>&-; wait "$held"; }

without=$("$objects" rc=3 2>&1)
succeeds "the packages are installed" install "$2"
is "which changes nothing for programs" "$("$objects" rc=3 2>&1)" "$without"
is "nor for those that are linked to libmlx5" "$("$linked" -d mlx5_0 rc=3 2>&1)" "$without"
succeeds "the policy that they bring is put in force" rdmaquota reload
is "which changes nothing either" "$("$objects" rc=3 2>&1)" "$without"
policy 2
has "a limit holds" "$("$objects" rc=5 2>&1)" "rc: 2 of 5, then EDQUOT"
has "for a program that is linked to libmlx5 too" "$("$linked" -d mlx5_0 rc=5 2>&1)" "rc: 2 of 5, then EDQUOT"
succeeds "doctor finds nothing wrong with the installation" rdmaquota doctor

# The guest is a machine of its own, which the server `null` cannot say. Of a source tree it wants the tests alone.
mkdir -p source/debian && cp -r "$here/../../debian/tests" source/debian/
succeeds "the packages' own test passes in autopkgtest" \
    autopkgtest --no-built-binaries --ignore-restrictions=isolation-machine ./source/ -- null

policy 4
hold rc=2
succeeds "a newer version is installed while a program holds 2 QPs" install "$3"
has "it still has them in the books" "$("$objects" rc=5 2>&1)" "rc: 2 of 5, then EDQUOT"
let_go
is "and may go on" "$(cat held.out)" "rc: 2 of 2
waiting
rc: 1 of 1"
has "what it held is back when it ends" "$("$objects" rc=5 2>&1)" "rc: 4 of 5, then EDQUOT"
succeeds "an older version is installed again" install "$2"
has "and limits" "$("$objects" rc=5 2>&1)" "rc: 4 of 5, then EDQUOT"

policy 4 deny
rdmaquotad > sidecar.log 2>&1 &
sidecar=$!
for _ in $(seq 300); do rdmaquota guard --json 2> /dev/null | grep -q '"state":"deny"' && break; sleep 0.2; done
is "the kernel refuses what a program makes without the library" "$("$raw" ioctl 5 < /dev/null | head -n 1)" "pd: 3 of 5 EDQUOT"
kill -9 $sidecar
wait $sidecar 2> /dev/null
is "also without a sidecar" "$("$raw" ioctl 5 < /dev/null | head -n 1)" "pd: 3 of 5 EDQUOT"

hold rc=2
succeeds "the packages are removed while a program holds 2 QPs" dpkg -r rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
is "programs are started as without them" "$("$objects" rc=5 2>&1)" "rc: 5 of 5"
is "the kernel refuses nothing any more" "$("$raw" ioctl 5 < /dev/null | head -n 1)" "pd: 5 of 5"
is "also those that are linked to libmlx5" "$("$linked" -d mlx5_0 rc=3 2>&1)" "$without"
let_go
is "the program goes on" "$(cat held.out)" "rc: 2 of 2
waiting
rc: 1 of 1"
succeeds "they are installed again" install "$3"
has "the policy was kept, and the books are right" "$(rdmaquota reload > /dev/null 2>&1; "$objects" rc=5 2>&1)" \
    "rc: 4 of 5, then EDQUOT"
hold rc=2
succeeds "and purged while a program holds 2 QPs" dpkg -P rdmaquota-slurm rdmaquotad rdmaquota librdmaquota-provider
is "which leaves nothing" "$(ls -d /run/rdmaquota /etc/rdmaquota /etc/libibverbs.d/rdmaquota.driver 2> /dev/null)" ""
let_go
is "that program goes on, too" "$(cat held.out)" "$(printf '%s\n' 'rc: 2 of 2' waiting 'rc: 1 of 1')"
is "programs run as before" "$("$objects" rc=3 2>&1)" "$without"
finish
