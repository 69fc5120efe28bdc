#!/bin/bash
# older.sh BUILD: builds version 0.1, the one from before the packages, with its sidecar and their prefix, below the build directory,
# and prints the directory where it is staged as an installation has it. A build that is there is used again.
# Exit status: 77 when the history lacks its commit, as a shallow clone's does.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
commit=23ca24c older=$1/older-0.1
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
        meson setup "$older/build" "$older/source" --prefix=/usr -Dtests=false -Dsidecar=enabled --buildtype=plain
        ninja -C "$older/build"
        DESTDIR=$older/stage meson install -C "$older/build" --no-rebuild --strip
    } > "$older/log" 2>&1 9>&- || { tail -n 40 "$older/log" >&2; exit 1; }
    touch "$older/stage/complete"
fi
echo "$older/stage"
