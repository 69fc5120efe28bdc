#!/bin/bash
# demo_in_guest.sh PROGRAMS: what tools/demo.sh shows, run in the guest.
programs=$1
cd "$(mktemp -d)" || exit 1
cp "$programs/verbs_objects" ./program
cp "$programs/dv_objects" ./mlx5_program
cp "$programs/raw_uverbs" ./raw_program

say() { printf '\n# %s\n' "$*"; }
# eventually COMMAND...: until it succeeds, for five minutes at most; the demonstration then goes on, and shows what there is
eventually() {
    local last=$((SECONDS + 300))
    until "$@" > /dev/null 2>&1 || [ $SECONDS -ge $last ]; do sleep 0.1; done
}
waits_again() { [ "$(grep -c waiting output)" = 2 ]; }
guard_is_on() { rdmaquota guard | grep -q 'is on: the kernel refuses'; }
try() {
    printf '$ %s\n' "$*"
    "$@" 2>&1
}

say "The devices, and a program that knows nothing of quotas: it creates five QPs."
try rdma link show
try ./program -d rxe0 rc=5

say "The administrator allows the tenant two. No restart, no relinking, no LD_PRELOAD, no daemon."
try rdmaquota set default '*' qp=2
try ./program -d rxe0 rc=5

say "The program holds its two QPs and waits; meanwhile the ledger says who has what."
mkfifo keys
./program -d rxe0 rc=5 wait rc=2 wait < keys > output 2>&1 &
pid=$!
exec 9> keys
eventually grep -q waiting output
try rdmaquota show

say "A live change of the limit lets it go on."
try rdmaquota set rxe0 qp=4
echo >&9
eventually waits_again
printf '$ cat output\n'
cat output

say "kill -9: the kernel destroys its QPs, and the usage is back at zero at once."
printf '$ kill -9 %s\n' "$pid"
kill -9 "$pid"
wait "$pid" 2> /dev/null
exec 9>&-
try rdmaquota show

say "mlx5_0, driven by the real libmlx5: a program that is linked to it, as UCX and DPDK are, and uses its own calls."
try rdmaquota set mlx5_0 qp=2 mr_bytes=1MiB
printf '$ ldd ./mlx5_program | grep libmlx5\n'
ldd ./mlx5_program | grep libmlx5
say "A QP of the verbs, then QPs by mlx5dv_create_qp, by a DEVX command, and memory that DEVX pins:"
try ./mlx5_program -d mlx5_0 rc=1 dvqp=2 devx=1:0x500 umem=2:1048576

say "What happened:"
try rdmaquota events

say "A program that talks to the kernel itself, with no library, goes around the quota. The sidecar sees and reports it:"
command -v rdmaquotad > /dev/null || { echo "(this build has no rdmaquotad)"; exit 0; }
rdmaquotad 2> sidecar.log &
sidecar=$!
eventually test -S /run/rdmaquota/control.sock
printf '$ ./raw_program ioctl 5\n'
exec 8<> keys
./raw_program ioctl 5 <&8 &
eventually grep -q bypass: sidecar.log
printf '$ rdmaquota events | grep bypass\n'
rdmaquota events | grep bypass
echo >&8
wait $!

say "With the guard, the kernel itself refuses it."
cat > guarded.toml << 'END'
version = 1
[sidecar]
guard = "deny"
[tenant.default.rxe0]
pd = 2
END
try cat guarded.toml
try rdmaquota reload guarded.toml
eventually guard_is_on
echo | try ./raw_program ioctl 5
try rdmaquota guard
rdmaquota guard off > /dev/null
kill "$sidecar"
wait "$sidecar"
