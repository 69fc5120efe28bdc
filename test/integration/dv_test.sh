#!/bin/bash
# dv_test.sh BUILD: what libmlx5's own calls create is charged as what the verbs create, once, in whatever order the
# libraries are loaded. Runs as root in the guest with --device mlx5sim, after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh" "$1" mlx5_0
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
objects=("$programs/dv_objects" -d mlx5_0)
real=$(realpath "$real_dir/libmlx5.so.1")

# --- denials ------------------------------------------------------------------------------------------
# The program's own objects are a PD and a CQ.
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 2
cq = 3
wq = 2
mr = 2
srq = 2
dm = 2
mr_bytes = 10000'
denied() {
    sed -n 's/^rdmaquota: \([a-z_]*\) on mlx5_0 denied (EDQUOT): tenant default.*to allow it: .*/\1/p' <<< "$log" |
        tr '\n' ' '
}
# held NAME RESOURCE STEP...: the last STEP, of five objects, makes two and is denied RESOURCE
held() {
    run "${objects[@]}" "${@:3}"
    is "$1: two of five" "${out##*$'\n'}" "$(cut -d= -f1 <<< "${*: -1}"): 2 of 5, then EDQUOT"
    is "$1: what is denied is said" "$(denied)" "$2 "
}
held "mlx5dv_create_qp" qp dvqp=5
held "mlx5dv_create_qp beside ibv_create_qp" qp rc=1 drop=rc dvqp=5
held "mlx5dv_create_cq" cq dvcq=5
held "mlx5dv_create_wq" wq dvwq=5
held "mlx5dv_create_mkey" mr mkey=5
held "mlx5dv_alloc_dm" dm dvdm=5
held "mlx5dv_devx_umem_reg" mr_bytes umem=5
held "mlx5dv_devx_umem_reg_ex" mr_bytes umemx=5
# Opcodes of mlx5_ifc.h.
while read -r name resource opcode; do
    held "mlx5dv_devx_obj_create, $name" "$resource" "devx=5:$opcode"
done << 'END'
CREATE_MKEY mr 0x200
CREATE_CQ cq 0x400
CREATE_QP qp 0x500
CREATE_SRQ srq 0x700
CREATE_XRC_SRQ srq 0x705
CREATE_DCT qp 0x710
CREATE_XRQ srq 0x717
CREATE_SQ wq 0x904
CREATE_RQ wq 0x908
CREATE_RMP srq 0x90c
END
run "${objects[@]}" devx=5:0x912
is "an object of another kind is none of these" "$out" "devx: 5 of 5"
has "a denial is an event" "$(rdmaquota events | grep denied | tail -n 1)" "mlx5_0 srq  2 of 2 used, 1 more asked"
policy <<< 'version = 1
deny_errno = "ENOMEM"
[tenant.default.mlx5_0]
hca_object = 5'
run "${objects[@]}" devx=2:0x912 umem=5
is "but of the kernel's; the policy tells the errno" "$out" "devx: 2 of 2
umem: 1 of 5, then ENOMEM"
policy <<< 'version = 1
[tenant.default.mlx5_0]
send_wr = 20
cqe = 100
recv_wr = 40
dm_bytes = 10000'
run "${objects[@]}" dvqp=5 drop=dvqp dvcq=5 dvwq=5 dvdm=5
is "and each amount" "$(denied)$out" "send_wr cqe recv_wr dm_bytes dvqp: 2 of 5, then EDQUOT
drop dvqp: 2
dvcq: 2 of 5, then EDQUOT
dvwq: 2 of 5, then EDQUOT
dvdm: 2 of 5, then EDQUOT"
before=$(calls devx_create)
policy <<< 'version = 1
[tenant.default.mlx5_0]
qp = 0'
run "${objects[@]}" devx=1
is "what is denied never reaches the driver" "$(calls devx_create)" "$before"

# --- what is charged, once, in each load order -----------------------------------------------------------
policy <<< 'version = 1'
every_kind=(dvqp=2 dvcq=2:100 dvwq=2:16 mkey=3 dvdm=2:4096 umem=1:1048576 umemx=2:8192
    devx=2:0x500 devx=1:0x400 devx=1:0x912)
wanted="cq 4 max
cqe 264 max
dm 2 max
dm_bytes 8 KiB
hca_handle 1 max
hca_object 20 max
mr 3 max
mr_bytes 1.0 MiB
pd 1 max
qp 4 max
recv_wr 48 max
send_wr 16 max
wq 2 max"
# charged NAME COMMAND...: what it holds with every kind of object, and nothing when they are gone
charged() {
    start "${@:2}" -d mlx5_0 ${load+"load=$load"} "${every_kind[@]}" wait
    is "$1: each object is charged once" "$(ledger | sort)" "$wanted"
    is "$1: and each byte" "$(usage_of mr_bytes)" $((1048576 + 2 * 8192))
    proceed
}
charged "linked, bound at the start" "$programs/dv_objects"
charged "linked, bound at first use" "$programs/dv_objects_lazy"
charged "linked, and preloaded" env LD_PRELOAD=libmlx5.so.1 "$programs/dv_objects"
for load in libmlx5.so.1 libmlx5.so "$real" "$programs/libmlx5_plugin.so"; do
    charged "libibverbs first, then dlopen of ${load##*/}" "$programs/dv_objects_late"
done
load=libmlx5.so.1
charged "libmlx5, libibverbs, libmlx5" env LD_PRELOAD=libmlx5.so.1 "$programs/dv_objects_late"
unset load
install -m 4755 "$programs/dv_objects" setuid_objects
chmod 755 .
charged "setuid" setpriv --reuid=65534 --clear-groups ./setuid_objects

# --- the kernel's own numbers ------------------------------------------------------------------------------
away=(drop=dvqp drop=dvwq drop=dvcq drop=mkey drop=dvdm drop=umem drop=umemx drop=devx)
start in_cgroup probe "${objects[@]}" "${every_kind[@]}" wait "${away[@]}" wait "${every_kind[@]}" close wait
for moment in "with every kind of object" "after destroying them" "after closing the device"; do
    is "hca_object is the kernel's but for UARs, $moment" "$(usage_of hca_object)" \
        "$(($(kernel probe hca_object) - $(uars)))"
    [ "$moment" != "after destroying them" ] || is "and only the program's own are left" "$(usage_of hca_object)" 2
    [ "$moment" = "with every kind of object" ] && { echo >&9; until_waiting 2; }
    [ "$moment" = "after destroying them" ] && { echo >&9; until_waiting 3; }
done
proceed
is "nothing is left at the end" "$(ledger)" ""
start "${objects[@]}" "${every_kind[@]}" wait
kill -9 "$program"
wait "$program" 2> /dev/null
exec 9>&-
is "nor after kill -9" "$(ledger)" ""

# --- commands that fail after the charge ----------------------------------------------------------------------
creating=(create_qp create_cq create_wq alloc_dm devx_create devx_umem_reg)
start "${objects[@]}" umem=1 wait dvqp=1 dvcq=1 dvwq=1 mkey=1 dvdm=1 umem=1 umemx=1 devx=1 wait
before=$(ledger)
has "something is in use before" "$before" "mr_bytes 4 KiB"
knob errno 28 "${creating[@]}"
echo >&9
until_waiting 2
is "a command that fails gives the charge back" "$(ledger)" "$before"
knob errno 0 "${creating[@]}"
is "and keeps its errno" "$(grep -c '0 of 1, then ENOSPC' running)" 8
lacks "and is no denial" "$(cat running)" denied
proceed
start "${objects[@]}" mkey=2 umem=2 devx=2 wait drop=mkey drop=umem drop=devx wait drop=mkey drop=umem drop=devx wait
before=$(ledger)
knob errno 16 devx_destroy devx_umem_dereg
echo >&9
until_waiting 2
is "a destruction that fails keeps the charge" "$(ledger)" "$before"
is "and its errno" "$(grep -c 'drop .*: 0, then EBUSY' running)" 3
knob errno 0 devx_destroy devx_umem_dereg
echo >&9
until_waiting 3
is "one that then succeeds gives it back" "$(usage_of mr) $(usage_of mr_bytes) $(usage_of qp) $(usage_of hca_object)" \
    "0 0 0 2"
proceed

# --- the sidecar -----------------------------------------------------------------------------------------------
# It counts what the driver calls its own objects (DEVX, doorbell pages) as no verbs object, on-demand memory as not
# pinned, and each handle of a shared QP as a QP.
start_sidecar
: > sidecar.log
start "${objects[@]}" "${every_kind[@]}" odp=2:65536 xrcd=1 xrc=2 second=2 rc=3 mr=2 wait
is "the program has all of these" "$(grep -c 'then' running)" 0
looks_pass 7
is "the sidecar finds neither bypass nor leak" "$(cat sidecar.log)" ""
proceed
start bare "${objects[@]}" rc=2 devx=2 wait
await "bypass: " && has "but with the provider away it does" "$line" "on mlx5_0, "
proceed
stop_sidecar
finish
