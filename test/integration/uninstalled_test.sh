#!/bin/bash
# uninstalled_test.sh BUILD: `rdmaquota run` from a build tree, as an ordinary user, in the guest without an installation.
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/tap.sh"
# A copy in a place that all users can reach, which the build may not be in.
tree=$(mktemp -d)
chmod 755 "$tree"
mkdir -p "$tree/tools/rdmaquota" "$tree/provider"
cp "$1/tools/rdmaquota/rdmaquota" "$tree/tools/rdmaquota"
cp -a "$1"/provider/librdmaquota*.so "$tree/provider"
cp "$1/test/programs/verbs_objects" "$tree"
objects=$tree/verbs_objects
rdmaquota=$tree/tools/rdmaquota/rdmaquota
as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent "$@"; }

out=$(as_user "$rdmaquota" run --limit qp=2 -- "$objects" rc=3 2> /tmp/log)
is "an ordinary user's run --limit qp=2" "$out" "rc: 2 of 3, then EDQUOT"
has "the denial line" "$(cat /tmp/log)" "this process uses 2 of 2"
out=$(as_user "$rdmaquota" run --tenant-limit pd=2 --mode audit -- "$objects" pd=3 2> /tmp/log)
is "run --mode audit" "$out" "pd: 3 of 3"
as_user "$rdmaquota" run -- sh -c 'exit 37'
is "the program's own status" $? 37
is "nothing is left behind" \
    "$(find /tmp /run /dev/shm -maxdepth 1 -name '*rdmaquota*' ! -name rdmaquota-vm 2> /dev/null)" ""
finish
