#!/bin/bash
# web_axe.sh BUILD: axe-core, a checker of accessibility, finds nothing on any page. It comes from npm and is kept in the cache of
# test/vm. Exit status 77: without npm or the browser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/vm/common.sh
. "$here/../vm/common.sh"
need npm npm
kept=$(npm_packages axe-core@4.14.1)
exec /usr/bin/python3 "$here/web_test.py" "$1" axe "$kept/node_modules/axe-core/axe.min.js"
