#!/bin/bash
# debs.sh RELEASE: prints a directory with that release's packages of HEAD, for suites that run from what is installed. They
# are built once for each commit, and kept in the build directory (RDMAQUOTA_BUILD). Root only.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
build=${RDMAQUOTA_BUILD:-$repo/build}
commit=$(git -C "$repo" rev-parse HEAD)
kept=$build/debs-$1

# Two suites may want them at once, and a build has the release's root to itself.
exec 9> "$kept.lock"
flock 9
if [ "$(cat "$kept/commit" 2> /dev/null)" != "$commit" ]; then
    git -C "$repo" diff --quiet HEAD || echo "debs.sh: what is not committed is not in the packages" >&2
    rm -rf "$kept"
    RDMAQUOTA_COMPILER_CACHE=yes "$repo/tools/package.sh" --output "$kept" "$1" >&2
    echo "$commit" > "$kept/commit"
fi
echo "$kept/$1"
