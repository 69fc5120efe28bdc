#!/bin/bash
# root_test.sh BUILD PABI: the QP case under another release of rdma-core; runs in the guest in that
# release's root file system, which has neither our CLI's libraries nor python.
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/tap.sh"
objects=$1/test/programs/verbs_objects
is "this is libibverbs' private ABI $2" "$(echo /usr/lib/*/libibverbs/librxe-rdmav*.so | sed 's/.*rdmav\(.*\).so/\1/')" "$2"
out=$("$objects" rc=5 drop=rc uc=5 ud=1 2> /tmp/log)
is "2 of 5 QPs under qp=2" "$out" "rc: 2 of 5, then EDQUOT
drop rc: 2
uc: 2 of 5, then EDQUOT
ud: 0 of 1, then EDQUOT"
has "the denial line" "$(cat /tmp/log)" "rdmaquota: qp on rxe0 denied (EDQUOT): tenant default uses 2 of 2"
finish
