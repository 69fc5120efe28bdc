# What the scripts of this folder share; sourced, never run. Messages go to stderr only:
# stdout belongs to the command in the guest, or to the path a script prints.
# shellcheck shell=bash disable=SC2034 # each script uses some of these

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
repo_dir=$(cd "$vm_dir/../.." && pwd -P)
me=$(basename "$0")

# Outside of the source tree, so that several checkouts and builds share it.
cache_dir=${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rdmaquota}
mkdir -p "$cache_dir" || { echo "$me: cannot create $cache_dir; set RDMAQUOTA_CACHE" >&2; exit 125; }
cache_dir=$(cd "$cache_dir" && pwd -P)

say() { echo "$me: $*" >&2; }
skip() { echo "SKIP: $*" >&2; exit 77; }
wrong_usage() { say "$*; see $me --help"; exit 2; }

# need COMMAND PACKAGE...: without COMMAND, skips and names the packages to install.
need() {
    command -v "$1" >/dev/null || skip "$1 is not installed (packages: ${*:2})"
}

# npm_packages NAME@VERSION...: the directory in which npm has installed them, once for all
npm_packages() {
    local kept partial=$cache_dir/.partial-npm
    kept=$cache_dir/npm-$(echo "$@" | sha256sum | cut -c1-12)
    lock npm
    if [ ! -d "$kept" ]; then
        rm -rf "$partial" && mkdir "$partial"
        npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps --prefix "$partial" "$@" > /dev/null || skip "npm cannot fetch $*"
        mv -T "$partial" "$kept"
    fi
    echo "$kept"
}

# usage: prints the calling script's own header comment.
usage() { sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; }

# lock NAME: waits while another script prepares the same thing. The kernel releases the lock when this one ends.
lock() {
    exec 9>"$cache_dir/$1.lock"
    flock -n 9 || { say "waiting for another $me"; flock 9; }
}
