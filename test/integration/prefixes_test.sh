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
# unheld WORDS STATUS COMMAND...: run says of COMMAND, which waits with its device open, that it is not held
unheld() {
    local status=0
    start rdmaquota run --limit qp=2 -- "${@:3}"
    proceed || status=$?
    has "not held, and said: ${*:3:4}" "$(cat running)" "$1"
    is "its status" $status "$2"
}
unheld "opened rxe0 through $spack, which did not load the provider" 1 \
    env -u RDMAV_DRIVERS -u LD_PRELOAD "$early" "verbs=$spack" device=rxe0 qps=4 wait
unheld "rdmaquota: early (pid " 3 \
    sh -c "(env -u RDMAV_DRIVERS -u LD_PRELOAD '$early' verbs=$spack device=rxe0 qps=4 wait); exit 3"
unheld "opened rxe0 without a libibverbs" 1 "$programs/raw_uverbs" ioctl 1
# shellcheck disable=SC2016 # expanded by the inner shell
run rdmaquota run --limit qp=2 -- sh -c 'for i in 1 2 3 4 5 6 7 8; do "$@" > /dev/null || exit; done' sh "$programs/verbs_objects" -d rxe0 rc=2
is "of short programs that are held, nothing is said" "$log $status" " 0"

# --- one libibverbs, by each way -----------------------------------------------------------------------
run "$programs/verbs_objects" -d rxe0 rc=4
is "a linked one is held" "$out" "rc: 2 of 4, then EDQUOT"
run "$early" verbs=libibverbs.so.1 device=rxe0 qps=4
is "a dlopened one" "$out" "$limit"
# Its errno is another.
run "$early" apart=libibverbs.so.1 device=rxe0 qps=4
has "one in a namespace of its own (dlmopen)" "$out" "2 of 4 QPs, then"

# --- several in one process -----------------------------------------------------------------------------
policy <<< 'version = 1
[process."*"]
qp = 3'
run "$early" device=rxe0 qps=2 apart=libibverbs.so.1 qps=4
has "a process has one slot, also with dlmopen" "$out" "2 of 2 QPs
1 of 4 QPs, then"
run "$early" device=rxe0 apart=libibverbs.so.1 qps=2 verbs=libibverbs.so.1 qps=4
is "in either order" "$out" "2 of 2 QPs
1 of 4 QPs, then EDQUOT"
start "$early" device=rxe0 qps=2 apart=libibverbs.so.1 qps=1 wait
is "which show has as one process" "$(rdmaquota show --json | grep -o '"pid":' | wc -l)" 1
proceed
is "nothing is left in use" "$(usage_of qp)" 0

# A wheel's libraries have names of their own. Its libmlx5 registers itself with its libibverbs.
mkdir /whl
cp -L "$real_dir/libibverbs.so.1" /whl/libibverb-a.so1
cp -L "$real_dir/libmlx5.so.1" /whl/libmlx5-b.so
for file in /whl/*; do retext "$file" libibverbs.so.1 libibverb-a.so1; done
retext /whl/libmlx5-b.so libmlx5.so.1 libmlx5-b.so
wheel=(open=/whl/libibverb-a.so1 open=/whl/libmlx5-b.so verbs=/whl/libibverb-a.so1 device=mlx5_0)
run "$early" "${wheel[@]}" qps=4
is "a wheel is held where another device is" "$out" "3 of 4 QPs, then EDQUOT"
run "$early" device=mlx5_0 qps=2 "${wheel[@]}" qps=4
is "the node's, then a wheel's" "$out" "2 of 2 QPs
1 of 4 QPs, then EDQUOT"
run "$early" "${wheel[@]}" qps=2 verbs=libibverbs.so.1 qps=4
is "a wheel's, then the node's" "$out" "2 of 2 QPs
1 of 4 QPs, then EDQUOT"
run rdmaquota run --limit qp=2 -- "$early" device=mlx5_0 qps=1 "${wheel[@]}" qps=4
is "by run, too" "$out $status" "1 of 1 QPs
1 of 4 QPs, then EDQUOT 0"

# --- rdmaquota adopt --------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
# What cannot be adopted: it reads directories that are elsewhere, and where no provider is.
mkdir /odd
cp /whl/libibverb-a.so1 /odd/
retext /odd/libibverb-a.so1 /etc/libibverbs.d /odx/libibverbs.d
run rdmaquota adopt --scan /sp,/whl,/odd
is "scan says what holds each" "$out $status" "/odd/libibverb-a.so1 (private ABI 34): cannot be adopted, it reads /odx/libibverbs.d, \
which is not below /odd: nothing limits its programs, but 'rdmaquota run' can
$spack (private ABI 34): not held: nothing limits its programs; run 'rdmaquota adopt /sp'
/whl/libibverb-a.so1 (private ABI 34): held, by /etc/libibverbs.d/rdmaquota.driver 0"
start "$early" "verbs=$spack" device=rxe0 qps=1 wait
has "doctor names a libibverbs that does not load the provider" "$(rdmaquota doctor --pid "$program")" \
    "libibverbs: $spack does not load the provider: run 'rdmaquota adopt /sp'"
proceed
run rdmaquota adopt /odd
is "what cannot be adopted is an error" "$status $log" "1 rdmaquota: cannot adopt /odd/libibverb-a.so1: it reads /odx/libibverbs.d, \
which is not below /odd; see 'rdmaquota adopt --scan /odd'"
run rdmaquota adopt /home
is "so is a prefix without a libibverbs" "$status $log" "1 rdmaquota: found no libibverbs below /home"
run rdmaquota adopt /sp
is "a prefix is adopted" "$out $status" "$spack (private ABI 34): programs that start from now on load rdmaquota 0"
run "$early" "verbs=$spack" device=rxe0 qps=4
is "and its programs are held" "$out" "$limit"
has "as scan says" "$(rdmaquota adopt --scan /sp)" "held, by /sp/libibverbs.d/rdmaquota.driver"
run "$early" device=rxe0 "verbs=$spack" qps=4 "${wheel[@]}" qps=4
is "a wheel's beside them, too" "$out" "$limit
$limit"
run rdmaquota adopt --remove /sp
is "and is as it was after its removal" "$("$early" "verbs=$spack" device=rxe0 qps=4) $(find /sp -name '*rdmaquota*')" "4 of 4 QPs "

finish
