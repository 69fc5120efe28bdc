#!/bin/bash
# root_test.sh BUILD PABI: the QP case under another release of rdma-core, on rxe0 and mlx5_0; runs in the guest in
# that release's root file system, which has neither our CLI's libraries nor python.
set -u
# shellcheck source=test/integration/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=test/integration/prefix.sh
. "$(dirname "$0")/prefix.sh"
objects=$1/test/programs/verbs_objects
is "this is libibverbs' private ABI $2" \
    "$(echo /usr/lib/*/libibverbs/librxe-rdmav*.so | sed 's/.*rdmav\(.*\).so/\1/')" "$2"
out=$("$objects" rc=5 drop=rc uc=5 ud=1 2> /tmp/log)
is "2 of 5 QPs under qp=2" "$out" "rc: 2 of 5, then EDQUOT
drop rc: 2
uc: 2 of 5, then EDQUOT
ud: 0 of 1, then EDQUOT"
has "the denial line" "$(cat /tmp/log)" "rdmaquota: qp on rxe0 denied (EDQUOT): tenant default uses 2 of 2"

# This machine's libibverbs and driver, in a prefix, beside the release's: two private ABIs in one process where that is another.
make_prefix "$1/other_verbs" /sp
other=$prefix_libraries/libibverbs.so.1
# Of two libraries of one name the loader would give both drivers the first.
for file in "$other" "$prefix_libraries"/libibverbs/librxe-*; do retext "$file" libibverbs.so.1 libibverb-o.so1; done
own=$(dirname "$(find /usr/lib -name librdmaquota.so)")
cp "$own/librdmaquota-rdmav34.so" "$prefix_libraries/libibverbs"
ln -s "$own/librdmaquota.so" "$prefix_libraries/libibverbs"
echo 'driver rdmaquota' > /sp/libibverbs.d/rdmaquota.driver
early=$1/test/programs/early
is "the release's libibverbs, then another" "$("$early" device=rxe0 qps=1 "verbs=$other" qps=4 2> /tmp/log)" "1 of 1 QPs
1 of 4 QPs, then EDQUOT"
is "another, then the release's" "$("$early" device=rxe0 "verbs=$other" qps=1 verbs=libibverbs.so.1 qps=4 2> /tmp/log)" "1 of 1 QPs
1 of 4 QPs, then EDQUOT"

# libmlx5 of that release, on the simulated mlx5_0
out=$("$objects" -d mlx5_0 rc=5 drop=rc cq=2 mr=2 srq=2 ah=2 dm=2 2> /tmp/log)
is "2 of 5 QPs on mlx5_0" "$out" "rc: 2 of 5, then EDQUOT
drop rc: 2
cq: 2 of 2
mr: 2 of 2
srq: 2 of 2
ah: 2 of 2
dm: 2 of 2"
out=$("$1/test/programs/verbs_objects_mlx5" -d mlx5_0 rc=5 2>&1)
has "and in a program that is linked to libmlx5" "$out" "rc: 2 of 5, then EDQUOT"
has "which the loader gives ours" "$(ldd "$1/test/programs/verbs_objects_mlx5")" "libmlx5.so.1 => $(tail -n 1 \
    /etc/ld.so.conf.d/00-rdmaquota.conf)"
is "and what libmlx5's own calls create there" \
    "$("$1/test/programs/dv_objects" -d mlx5_0 dvqp=5 drop=dvqp devx=5:0x500 drop=devx mkey=3 umem=2 umemx=2 \
        2> /dev/null)" \
    "dvqp: 2 of 5, then EDQUOT
drop dvqp: 2
devx: 2 of 5, then EDQUOT
drop devx: 2
mkey: 3 of 3
umem: 2 of 2
umemx: 2 of 2"
calls=$("$1/test/programs/mlx5_calls" mlx5_0)
has "mlx5dv_is_supported() is true" "$calls" "mlx5_0: mlx5dv_is_supported 1
mlx5dv_open_device: made"
functions=$("$1/test/programs/data_path" mlx5_0)
mv /etc/libibverbs.d/rdmaquota.driver /etc/ld.so.conf.d/00-rdmaquota.conf /tmp
ldconfig
is "libmlx5's own calls are as without us" "$calls" "$("$1/test/programs/mlx5_calls" mlx5_0)"
is "so are the data-path functions" "$functions" "$("$1/test/programs/data_path" mlx5_0)"
finish
