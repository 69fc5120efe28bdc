#!/bin/bash
# mlx5_test.sh BUILD: on mlx5_0, which the real libmlx5 drives and test/mlx5sim stands in for: what programs see is
# libmlx5's, and what they create is charged. Runs as root in the guest with --device both, after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" mlx5_0
objects() { "$programs/verbs_objects" -d mlx5_0 "$@"; }
everything=(rc=3 uc=2 ud=2 qpx=2 pd=2 cq=2 cqx=2 mr=2 odp=2 srq=2 ah=2 mw=2 xrcd=2 wq=2 table=2 flow=2 counters=2 dm=2
    ctx=2 cq=1:100 resize=300 resize=50 mr=1:4096 rereg=100000)
away=(drop=flow drop=table drop=wq drop=rc drop=uc drop=ud drop=qpx drop=cq drop=cqx drop=mr drop=odp drop=srq drop=ah
    drop=mw drop=xrcd drop=counters drop=dm drop=pd drop=ctx)

# same NAME COMMAND...: what it prints and its status are as without us
same() {
    local name=$1 with without
    shift
    with=$("$@" 2>&1; echo "status $?")
    without=$(bare "$@" 2>&1; echo "status $?")
    is "$name: as without us" "$with" "$without"
}

# --- delegation ---------------------------------------------------------------------------------
# Without limits, which would show in the device's attributes.
policy <<< 'version = 1'
same "ibv_devinfo" ibv_devinfo -v
same "every kind of object" objects "${everything[@]}" "${away[@]}"
same "libmlx5's own calls" "$programs/mlx5_calls" mlx5_0
same "data-path functions" "$programs/data_path" mlx5_0
functions=$("$programs/data_path" mlx5_0)
is "and all that there are lie in libmlx5" "$(grep -v -e ': libmlx5' -e ': none' <<< "$functions")" ""
has "as post_send does" "$functions" "post_send: libmlx5"
calls=$("$programs/mlx5_calls" mlx5_0)
has "mlx5dv_is_supported() is true" "$calls" "mlx5_0: mlx5dv_is_supported 1
mlx5dv_open_device: made"
has "mlx5dv_create_cq()" "$calls" "mlx5dv_create_cq: made"
for call in mlx5dv_create_qp mlx5dv_create_wq mlx5dv_create_mkey mlx5dv_devx_obj_create mlx5dv_devx_umem_reg; do
    has "$call()" "$calls" "$call: made"
done
has "what DEVX registers is really pinned" "$calls" "pinned 1040 KiB
mlx5dv_devx_umem_dereg: 0, pinned 16 KiB"

# --- quotas ---------------------------------------------------------------------------------------
# denied: the resources that the log names, in their order
denied() { sed -n 's/^rdmaquota: \([a-z_]*\) on mlx5_0 denied (EDQUOT).*/\1/p' <<< "$log" | tr '\n' ' '; }

# One PD, one CQ and one context are the program's own, a third QP is for the flows.
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 3
pd = 3
cq = 3
mr = 2
srq = 2
ah = 2
mw = 2
xrcd = 2
wq = 2
rwq_ind = 2
flow = 2
counters = 2
dm = 2
hca_handle = 3'
# held NAME KIND...: two of five of each; few enough for the log, which leaves out lines when there are many
held() {
    run objects ud=1 "${@:2}"
    is "$1 are held to their limits" "$(sed 1d <<< "$out")" \
        "$(printf '%s: 2 of 5, then EDQUOT\n' "${@:2}" | sed 's/=5:/:/')"
}
held "queues and memory" rc=5 pd=5 cq=5 mr=5 srq=5 ah=5 mw=5
is "and the line names them" "$(denied)" "qp pd cq mr srq ah mw "
held "objects of other kinds" xrcd=5 wq=5 table=5 flow=5 counters=5 dm=5 ctx=5
is "and the line names those" "$(denied)" "xrcd wq rwq_ind flow counters dm hca_handle "
run objects xrcd=1 xrc=1 second=5
is "each handle of a shared XRC QP is charged" "$(tail -n 1 <<< "$out")" "second: 2 of 5, then EDQUOT"
run objects xrcd=1 xrc=1 second=2 drop=xrc rc=2
is "as long as there is one" "$(tail -n 1 <<< "$out")" "rc: 1 of 2, then EDQUOT"
run objects qpx=5 cqx=5
is "so are those by the _ex calls" "$out" "qpx: 3 of 5, then EDQUOT
cqx: 2 of 5, then EDQUOT"
policy <<< 'version = 1
[tenant.default.mlx5_0]
send_wr = 20
recv_wr = 50
cqe = 100
mr_bytes = 8192
srq_wr = 40
dm_bytes = 8192'
run objects rc=5 wq=5 cq=5 odp=5:1048576 mr=5 srq=5 dm=5
is "and each amount; on-demand memory is not pinned" "$out" "rc: 2 of 5, then EDQUOT
wq: 2 of 5, then EDQUOT
cq: 2 of 5, then EDQUOT
odp: 5 of 5
mr: 2 of 5, then EDQUOT
srq: 2 of 5, then EDQUOT
dm: 2 of 5, then EDQUOT"
is "and the line names that" "$(denied)" "send_wr recv_wr cqe mr_bytes srq_wr dm_bytes "
run objects mr=1:4096 rereg=8192 mr=1:1 rereg=8193 rereg=4096 mr=1:4096 mr=1:1
is "rereg_mr moves the charge, up to the limit and down" "$out" "mr: 1 of 1
rereg: ok
mr: 0 of 1, then EDQUOT
rereg: EDQUOT
rereg: ok
mr: 1 of 1
mr: 0 of 1, then EDQUOT"
policy <<< 'version = 1
[tenant.default.mlx5_0]
hca_object = 4'
run objects pd=1 mr=5
is "objects of every kind together" "$out" "pd: 1 of 1
mr: 1 of 5, then EDQUOT"
is "nothing is left in use" "$(ledger)" ""
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 2'
before=$(calls create_qp)
run objects rc=5
is "what is denied never reaches the driver" "$(($(calls create_qp) - before))" 2
is "a limit of mlx5_0 is none of rxe0" "$("$programs/verbs_objects" -d rxe0 rc=5)" "rc: 5 of 5"
policy <<< 'version = 1
[tenant.default."*"]
pd = 0'
has "a program linked to libmlx5 is held to it beside another device" "$("$programs/mlx5_calls" mlx5_0 2> /dev/null)" \
    "ibv_alloc_pd: EDQUOT"

policy <<< 'version = 1
[tenant.default."*"]
qp = 2'
is "so is one that finds the real libmlx5 past the shadow" \
    "$(LD_LIBRARY_PATH=$real_dir "$programs/dv_objects" -d mlx5_0 rc=3 drop=rc dvqp=3 drop=dvqp devx=3 2> /dev/null)" \
    "rc: 2 of 3, then EDQUOT
drop rc: 2
dvqp: 2 of 3, then EDQUOT
drop dvqp: 2
devx: 2 of 3, then EDQUOT"

# --- the kernel's own numbers -----------------------------------------------------------------------
policy <<< 'version = 1'
start in_cgroup probe "$programs/verbs_objects" -d mlx5_0 "${everything[@]}" wait "${away[@]}" wait
tracked() { rdma resource show | sed -n 's/.*mlx5_0: \(.*\) cm_id 0 \(.*[0-9]\) *$/\1 \2/p'; }
counted() { rdmaquota show | awk '$1 == "mlx5_0" { n[$2] = $3 } END {
    print "pd", n["pd"] + 0, "cq", n["cq"] + 0, "qp", n["qp"] + 0, "mr", n["mr"] + 0, "ctx", n["hca_handle"] + 0,
        "srq", n["srq"] + 0 }'; }
for moment in "with every kind of object" "after destroying them"; do
    is "hca_handle is the kernel's, $moment" "$(usage_of hca_handle)" "$(kernel probe hca_handle)"
    is "hca_object is the kernel's but for UARs, $moment" "$(usage_of hca_object)" \
        "$(($(kernel probe hca_object) - $(uars)))"
    is "so are the kernel's tracked resources, $moment" "$(counted)" "$(tracked)"
    [ "$moment" = "after destroying them" ] || { echo >&9; until_waiting 2; }
done
proceed
is "and nothing is left" "$(ledger)$(tracked)" "pd 0 cq 0 qp 0 mr 0 ctx 0 srq 0"

# --- commands that fail after the charge ------------------------------------------------------------
creating=(create_qp create_cq reg_mr alloc_pd create_srq create_ah alloc_mw alloc_xrcd create_wq create_rwq_ind_table
    create_flow create_counters alloc_dm)
attempts=(rc=1 qpx=1 cq=1 cqx=1 mr=1 pd=1 srq=1 ah=1 mw=1 xrcd=1 wq=1 table=1 flow=1 counters=1 dm=1)
start objects ud=1 wq=1 cq=1:100 mr=1 wait "${attempts[@]}" ctx=1 resize=1000 rereg=1000000 wait
before=$(ledger)
has "something is in use before" "$before" "mr_bytes 4 KiB"
knob errno 28 "${creating[@]}" alloc_ucontext resize_cq rereg_mr
echo >&9
until_waiting 2
is "a command that fails gives the charge back" "$(ledger)" "$before"
out=$(rdmaquota explain)
has "explain says that the device refused it" "$out" "the call itself failed (ENOSPC) for pid"
knob errno 0 "${creating[@]}" alloc_ucontext resize_cq rereg_mr
proceed
is "and keeps its errno" "$(grep -c ENOSPC running)" $((${#attempts[@]} + 3))
lacks "and is no denial" "$(cat running)" "denied"
start objects rc=1 mr=1 wait drop=rc drop=mr wait drop=rc drop=mr wait
before=$(ledger)
has "a QP is in use" "$before" "qp 1 "
knob errno 16 destroy_qp dereg_mr
echo >&9
until_waiting 2
is "a destruction that fails keeps the charge" "$(ledger)" "$before"
is "and its errno" "$(grep -c 'drop .*: 0, then EBUSY' running)" 2
knob errno 0 destroy_qp dereg_mr
echo >&9
until_waiting 3
is "one that then succeeds gives it back" "$(usage_of qp) $(usage_of mr)" "0 0"
proceed

# --- slow commands ------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
qp = 4'
knob delay_ms 300 create_qp
objects rc=3 > one 2> /dev/null &
first=$!
objects rc=3 > two 2> /dev/null
wait $first
# Who is done first uncharges what it held: four are made at least, or more, never more than four at a time.
made=$(cat one two | awk '{ sum += $2 } END { print sum }')
is "two that create slowly share four QPs" "$([ "$made" -ge 4 ] && echo shared)" shared
knob delay_ms 600000 create_qp
"$programs/verbs_objects" -d mlx5_0 rc=1 > killed 2>&1 &
victim=$!
eventually "a creation under way is charged" prints 1 usage_of qp
is "a creation under way is charged" "$(usage_of qp)" 1
knob delay_ms 0 create_qp
kill -9 $victim
wait $victim 2> /dev/null
is "killed in the middle of it: the charge is back" "$?$(ledger)" 137

# --- removal --------------------------------------------------------------------------------------------
# The kernel frees the objects of a device that is removed, while their program lives and has its file open.
replug() {
    rmmod mlx5sim && insmod /run/rdmaquota-vm/mlx5sim.ko
    eventually "the device came back" test -c /dev/infiniband/uverbs1 -o -c /dev/infiniband/uverbs0
    eventually "mlx5_0 is there" test -d /sys/class/infiniband/mlx5_0
    chmod 666 /dev/infiniband/uverbs*
}
policy <<< 'version = 1
[tenant.default."*"]
qp = 4
hca_handle = 1'
for what in "" destroy; do
    start "$programs/replugged" mlx5_0 $what
    is "before the device is removed its QPs count" "$(usage_of qp)" 4
    replug
    echo >&9
    until_waiting 2
    has "what a removed device had no longer counts${what:+, nor does it when it is destroyed later}" "$(cat running)" \
        "on the device that came back: 4"
    is "and the device that came back has its own" "$(usage_of qp)" 4
    proceed
    is "nothing stays" "$(ledger)" ""
done

finish
