#!/bin/bash
# Sourced by suites of policy files that need no RDMA, with the build directory as $1: a working directory of their own, which is
# removed at their end, a quota directory in it, and `rdmaquota` as $rdmaquota.
set -u

build=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
rdmaquota=$build/tools/rdmaquota/rdmaquota
# shellcheck source=test/integration/tap.sh
. "$here/tap.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export RDMAQUOTA_DIR=$work/quota XDG_RUNTIME_DIR=$work/runtime LC_ALL=C.UTF-8
mkdir -m 700 "$XDG_RUNTIME_DIR"

# policy: writes policy.toml, the text from standard input
policy() { { echo 'version = 1'; cat; } > policy.toml; }
