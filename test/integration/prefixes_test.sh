#!/bin/bash
# prefixes_test.sh BUILD: programs with a libibverbs that is not the node's, or with several. Runs as root in the guest with an
# installation, with --device both.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" rxe0
# shellcheck source=test/integration/prefix.sh
. "$here/prefix.sh"
policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
early=$programs/early
limit="2 of 4 QPs, then EDQUOT"
make_prefix "$real_dir" /sp
spack=$prefix_libraries/libibverbs.so.1

# --- rdmaquota run ------------------------------------------------------------------------------------
run "$early" "verbs=$spack" device=rxe0 qps=4
is "a prefix that does not know the provider is not held" "$out" "4 of 4 QPs"
run rdmaquota run --limit qp=2 -- "$early" "verbs=$spack" device=rxe0 qps=4
is "by run it is" "$out $status" "$limit 0"
is "of which nothing is said but the denial" "$(grep -c . <<< "$log")" 1
run rdmaquota run --limit qp=2 -- env -u RDMAV_DRIVERS -u LD_PRELOAD "$early" "verbs=$spack" device=rxe0 qps=4
is "a program that takes the environment away fails" "$out $status" "4 of 4 QPs 1"
has "its name, the device and the library are said" "$log" "rdmaquota: early (pid "
has "and the library" "$log" "opened rxe0 through $spack, which did not load the provider"
run rdmaquota run --limit qp=2 -- sh -c "env -u RDMAV_DRIVERS -u LD_PRELOAD '$early' verbs=$spack device=rxe0 qps=4 & wait; exit 3"
is "a grandchild, too, and the program's own status stays" "$out $status" "4 of 4 QPs 3"
has "which is named" "$log" "opened rxe0 through $spack"
run rdmaquota run --limit qp=2 -- "$programs/raw_uverbs" rxe0 1
has "one without libibverbs is named" "$log" "opened rxe0 without a libibverbs"
is "and fails" "$status" 1
# shellcheck disable=SC2016 # expanded by the inner shell
run rdmaquota run --limit qp=2 -- sh -c 'for i in 1 2 3 4 5 6 7 8; do "$@" > /dev/null || exit; done' sh "$programs/verbs_objects" -d rxe0 rc=2
is "of short programs that are held, nothing is said" "$log $status" " 0"

finish
