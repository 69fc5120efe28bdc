#!/bin/bash
# run.sh: what the admission policy of docs/kubernetes.md admits (policy.mjs). Its YAML and CEL are read by two packages of
# npm, which are fetched once and kept in the cache of test/vm: Debian has no CEL. Exit status 77: without npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/vm/common.sh
. "$here/../vm/common.sh"
packages=(yaml@2.9.0 @marcbachmann/cel-js@8.0.0)

need node nodejs
need npm npm
kept=$(npm_packages "${packages[@]}")
# Where node looks for packages.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$kept/node_modules" "$work"
cp "$here/policy.mjs" "$work"
node "$work/policy.mjs" "${1:-$here/../../docs/kubernetes.md}"
