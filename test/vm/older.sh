#!/bin/bash
# older.sh BUILD [VERSION]: builds an earlier rdmaquota below the build directory, and prints the directory where it is staged
# as an installation has it. A build that is there is used again. VERSION is
#   untenanted   the one from before tenants, of whose files tools/common/upgrade knows, with BUILD's prefix; if not given
#   0.1          version 0.1, the one from before the packages, with its sidecar and theirs, /usr
# Exit status: 77 when the history lacks that commit, as a shallow clone's does.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
case ${2:-untenanted} in
    untenanted)
        commit=c30499e older=$1/older options=(-Dsidecar=disabled)
        # Both are installed to the same places.
        prefix=$(meson introspect "$1" --buildoptions | /usr/bin/python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
        ;;
    0.1) commit=23ca24c older=$1/older-0.1 options=(-Dsidecar=enabled --buildtype=plain) prefix=/usr ;;
    *) echo "older.sh: unknown version '$2'" >&2; exit 2 ;;
esac
git -C "$repo" cat-file -e "$commit^{commit}" 2> /dev/null ||
    { echo "SKIP: the history lacks commit $commit, the rdmaquota that is upgraded (git fetch --unshallow)" >&2; exit 77; }
mkdir -p "$older"
exec 9> "$older/lock"
flock 9
if [ ! -e "$older/stage/complete" ]; then
    rm -rf "$older/source" "$older/build" "$older/stage"
    mkdir "$older/source"
    git -C "$repo" archive "$commit" | tar -x -C "$older/source"
    {
        meson setup "$older/build" "$older/source" "--prefix=$prefix" -Dtests=false "${options[@]}"
        ninja -C "$older/build"
        DESTDIR=$older/stage meson install -C "$older/build" --no-rebuild --strip
    } > "$older/log" 2>&1 9>&- || { tail -n 40 "$older/log" >&2; exit 1; }
    touch "$older/stage/complete"
fi
echo "$older/stage"
