#!/bin/bash
# build.sh: builds mlx5sim for the guest's kernel and prints the module's path.
#
# The module is kept in ${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota}, made anew when its sources or
# the guest's kernel change. See mlx5sim.h for what it is.
# Exit status: 0 done, 1 failed, 2 wrong usage, 77 not possible here (SKIP: and the reason on stderr).
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=test/vm/common.sh
. "$here/../vm/common.sh"

case ${1-} in
    --help | -h) usage; exit 0 ;;
    ?*) wrong_usage "no arguments expected" ;;
esac
guest=$("$vm_dir/prepare.sh")
key=$(cat "$here"/* "$guest/release" | sha256sum | cut -c1-12)
built=$cache_dir/mlx5sim-$key
[ ! -d "$built" ] || { echo "$built/mlx5sim.ko"; exit 0; }

need make make
need gcc-12 gcc-12
lock mlx5sim
[ ! -d "$built" ] || { echo "$built/mlx5sim.ko"; exit 0; }

say "building mlx5sim for $(cat "$guest/release"), once"
partial=$cache_dir/.partial-mlx5sim
rm -rf "$partial"
mkdir "$partial"
cp "$here"/*.[ch] "$here/Kbuild" "$partial"
make -C "$guest/headers/build" M="$partial" modules >"$partial/log" 2>&1 || { cat "$partial/log" >&2; exit 1; }
if grep -q 'warning:' "$partial/log"; then
    cat "$partial/log" >&2
    exit 1
fi
strip --strip-debug "$partial/mlx5sim.ko"
find "$partial" -mindepth 1 ! -name mlx5sim.ko -delete
mv -T "$partial" "$built"
echo "$built/mlx5sim.ko"
