#!/bin/bash
# demo.sh: shows what rdmaquota does. Installs missing packages, builds what the demonstration needs, boots the test guest (a
# virtual machine with a stock kernel, a soft-RoCE device and a simulated mlx5_0) and installs rdmaquota there.
set -eu
repo=$(cd "$(dirname "$0")/.." && pwd)
export RDMAQUOTA_BUILD=${RDMAQUOTA_BUILD:-$repo/build}

step() { printf '\033[2m%s\033[0m\n' "$1" >&2; }
[ -t 2 ] || step() { echo "$1" >&2; }

step "installing what is missing (packages of Debian)"
"$repo/tools/setup.sh"
step "building"
[ -f "$RDMAQUOTA_BUILD/build.ninja" ] || meson setup "$RDMAQUOTA_BUILD" "$repo" > /dev/null
ninja -C "$RDMAQUOTA_BUILD" demo \
    > "$RDMAQUOTA_BUILD/demo-build.log" || { tail -n 20 "$RDMAQUOTA_BUILD/demo-build.log" >&2; exit 1; }
step "booting the guest and installing there"
exec "$repo/test/vm/run.sh" --device both --install -- \
    bash "$repo/tools/demo_in_guest.sh" "$RDMAQUOTA_BUILD/test/programs"
