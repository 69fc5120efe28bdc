#!/bin/bash
# guard_mlx5_test.sh BUILD: the guard on the simulated mlx5_0, whose driver does what rxe's does not: an MR gets another length
# in place. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" mlx5_0
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
guard_policy deny 100 > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
# hidden COMMAND...: begins it as one from which the provider is hidden; what it printed is one line in $out
# shellcheck disable=SC2016 # expanded by the inner shell
hidden() {
    begin unshare -m sh -c 'mount -t tmpfs tmpfs /etc/libibverbs.d && echo "driver mlx5" > /etc/libibverbs.d/mlx5.driver && exec "$@"' \
        sh "$@" wait
    out=$(xargs <<< "$out")
}
around() { hidden "$programs/verbs_objects" -d "$device" "$@"; }
# request STEP...: requests that libibverbs does not make
request() { hidden "$programs/requests" "$device" "$@"; }
part() {
    leave
    until_counted default mr_bytes 0
}
around mr=1:4096 rereg=100000
is "an MR's new length counts" "$out, $(counted default mr_bytes)" "mr: 1 of 1 rereg: ok, 100000"
part
around mr=2:4096 rereg=100000 rereg=50 rereg=4096
is "as it is at last" "$(counted default mr_bytes)" 8192
part
around mr=1:4096 rereg=2000000
is "and is refused where there is no room" "$out, $(counted default mr_bytes)" "mr: 1 of 1 rereg: EDQUOT, 4096"
part
is "nothing is left in the books" "$(counted default mr_bytes) $(counted default mr) $(counted default hca_object)" "0 0 0"
around rc=5
has "QPs are limited as on rxe" "$out" "rc: 3 of 5, then EDQUOT"
part
around xrcd=1 xrc=1 second=5
is "each handle of a shared XRC QP counts, and is refused where there is no room" "$out, $(counted default qp)" \
    "xrcd: 1 of 1 xrc: 1 of 1 second: 2 of 5, then EDQUOT, 3"
part
around xrcd=1 xrc=1 second=2 drop=xrc rc=2
is "as long as there is one" "$out, $(counted default qp)" "xrcd: 1 of 1 xrc: 1 of 1 second: 2 of 2 drop xrc: 1 rc: 1 of 2, then EDQUOT, 3"
part
begin "$programs/verbs_objects" -d "$device" xrcd=1 xrc=2 second=1 wait
is "by the library, too, as the guard counts" "$(grep -v rdmaquota <<< "$out" | xargs), $(usage_of qp) $(counted default qp)" \
    "xrcd: 1 of 1 xrc: 2 of 2 second: 1 of 1, 3 3"
part
is "nobody was killed for that" "$(killed_so_far)" 0
rdmaquota set "$device" dm=2 ah=2 srq=2 mw=2 counters=2 xrcd=2 > /dev/null
followed
for kind in dm ah srq mw counters xrcd; do
    around $kind=4
    is "so is $kind" "$out, $(counted default $kind)" "$kind: 2 of 4, then EDQUOT, 2"
    part
done
# The program has a CQ already, which the others need.
rdmaquota set "$device" cq=2 mr=2 wq=2 rwq_ind=2 flow=2 > /dev/null
followed
while read -r kind steps outcome; do
    # shellcheck disable=SC2086 # steps
    around ${steps//,/ }
    is "so is $kind" "$out, $(counted default "$kind")" "$outcome, 2"
    part
done << 'END'
cq cq=4 cq: 1 of 4, then EDQUOT
mr mr=4 mr: 2 of 4, then EDQUOT
wq wq=4 wq: 2 of 4, then EDQUOT
rwq_ind wq=1,table=4 wq: 1 of 1 table: 2 of 4, then EDQUOT
flow ud=1,flow=4 ud: 1 of 1 flow: 2 of 4, then EDQUOT
END
rdmaquota unset "$device" cq mr wq rwq_ind flow > /dev/null
followed
around
have=$(counted default hca_object)
is "a program's own PD and CQ are objects, what its driver makes is none" "$have" 2
part
rdmaquota set "$device" hca_object=$((have + 2)) > /dev/null
followed
around ah=4
is "and all objects together, without those that the driver makes for itself" "$out, $(counted default hca_object)" \
    "ah: 2 of 4, then EDQUOT, $((have + 2))"
part
rdmaquota unset "$device" hca_object > /dev/null
rdmaquota set "$device" dm_bytes=8192 > /dev/null
rdmaquota unset "$device" dm > /dev/null
followed
around dm=4:3200
is "and its bytes" "$out, $(counted default dm_bytes)" "dm: 2 of 4, then EDQUOT, 6400"
part

rdmaquota set "$device" pd=5 > /dev/null
followed
around import=3 ipd=3 theirs=6
is "what is imported is no object more, and what is made by an imported device counts with the file's" \
    "$out, $(counted default hca_handle) $(counted default pd)" "import: 3 of 3 ipd: 3 of 3 theirs: 4 of 6, then EDQUOT, 1 5"
part
rdmaquota unset "$device" pd > /dev/null
followed
hidden "$programs/dv_objects" -d "$device" devx=5:0x912 umem=3
is "objects of a driver's own are none" "$out, $(counted default hca_object)" "devx: 5 of 5 umem: 3 of 3, $have"
part

rdmaquota set "$device" mr=4 > /dev/null
followed
request open_qp=1 rc=5
is "a second handle that cannot be opened makes no other QP one" "$out" "open_qp: 0 of 1 EFAULT rc: 3 of 5 EDQUOT"
part
request mr=1 unanswered=100000
is "a new length counts also where the kernel cannot answer" "$out, $(counted default mr_bytes)" "mr: 1 of 1 unanswered: 0 of 1 EFAULT, 100000"
part
request mr=1 unanswered=900000 mr=1 unanswered=900000
is "and is refused" "$out, $(counted default mr_bytes)" "mr: 1 of 1 unanswered: 0 of 1 EFAULT mr: 1 of 1 unanswered: 0 of 1 EDQUOT, 904096"
part
request mr=1 rewrite=2000000
part
is "whoever has too many bytes by write is killed" "$ended" 137
request mr=1 unread=2000000
part
is "so is who has by one that cannot be read" "$ended" 137
request mr=1 rereg=0 rereg=600000 mr=1 rereg=0 rereg=600000
is "an MR that had no bytes counts when it has some" "$out, $(counted default mr_bytes)" \
    "mr: 1 of 1 rereg: 1 of 1 rereg: 1 of 1 mr: 1 of 1 rereg: 1 of 1 rereg: 0 of 1 EDQUOT, 600000"
part
request mr=4 access=4096
is "an MR may take another's place where there is no room for one more" "$out, $(counted default mr) $(counted default mr_bytes)" "mr: 4 of 4 access: 1 of 1, 4 16384"
part
is "its program lives" "$ended, $(counted default mr) $(counted default mr_bytes)" "0, 0 0"
request mr=1 rereg=1000000 access=0
is "also where there is no room for its bytes twice" "$out, $(counted default mr_bytes)" "mr: 1 of 1 rereg: 1 of 1 access: 1 of 1, 1000000"
part
is "nothing is left in the books of that either" "$ended, $(counted default mr) $(counted default mr_bytes)" "0, 0 0"
echo 300 > /sys/kernel/debug/mlx5sim/rereg_mr/delay_ms
request mr=2 both=700000
is "of two at once, one has room" "$out, $(counted default mr_bytes)" "mr: 2 of 2 both: 0 of 1 EDQUOT, 704096"
part
request mr=2 both=300000
is "or both have" "$out, $(counted default mr_bytes)" "mr: 2 of 2 both: 1 of 1, 600000"
part
is "and nobody is killed" "$ended" 0
request mr=2 mixed=700000
part
is "who hides one of the two is killed when it is too much" "$ended" 137
echo 0 > /sys/kernel/debug/mlx5sim/rereg_mr/delay_ms
request unknown=10:4096
is "what a method makes that is not known is learnt, and then refused" "$out, $(counted default mr)" "unknown: 4 of 10 EDQUOT, 4"
part
is "its program is not killed, but ends with the status of a refusal" "$ended, $(counted default mr)" "1, 0"
request unknown=3:500000
part
is "but for its bytes, which nobody can know before" "$ended" 137
rdmaquota unset "$device" mr > /dev/null

stop_sidecar
rdmaquota guard off > /dev/null
finish
