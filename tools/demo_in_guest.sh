#!/bin/bash
# demo_in_guest.sh PROGRAM: the story that tools/demo.sh tells, in the guest.
program=$1
cd "$(mktemp -d)" || exit 1
cp "$program" ./program

say() { printf '\n# %s\n' "$*"; }
try() {
    printf '$ %s\n' "$*"
    "$@" 2>&1
}

say "The device, and a program that knows nothing of quotas: it creates five QPs."
try rdma link show
try ./program rc=5

say "The administrator allows the tenant two. No restart, no relinking, no LD_PRELOAD, no daemon."
try rdmaquota set default '*' qp=2
try ./program rc=5

say "The program holds its two QPs and waits; meanwhile the books say who has what."
mkfifo keys
./program rc=5 wait rc=2 wait < keys > output 2>&1 &
pid=$!
exec 9> keys
until grep -q waiting output; do sleep 0.05; done
try rdmaquota show

say "A live change of the limit lets it go on."
try rdmaquota set rxe0 qp=4
echo >&9
until [ "$(grep -c waiting output)" = 2 ]; do sleep 0.05; done
printf '$ cat output\n'
cat output

say "kill -9: the kernel destroys its QPs, and the usage is back at zero at once."
printf '$ kill -9 %s\n' "$pid"
kill -9 "$pid"
wait "$pid" 2> /dev/null
exec 9>&-
try rdmaquota show

say "What happened:"
try rdmaquota events
