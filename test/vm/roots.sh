#!/bin/bash
# roots.sh RELEASE: prints a directory holding a Debian release's root filesystem, for run.sh --root.
#
# RELEASE is trixie (rdma-core 56, PABI 34), sid (rdma-core 65, PABI 65), bookworm (this machine: /), or bookworm-image, a
# tree of that release (rdma-core 44) for containers.
# The tree is made once with debootstrap, from the mirror this machine's apt uses, and kept in
# ${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota}. Delete the directory to renew it.
# Exit status: 0 done, 1 failed, 2 wrong usage, 77 not possible here (SKIP: and the reason on stderr).
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# rdmacm-utils brings librdmacm, whose own package name differs by release.
packages=ibverbs-utils,ibverbs-providers,libibverbs1,rdmacm-utils,perftest,rdma-core,iproute2

case ${1-} in
    --help | -h) usage; exit 0 ;;
    bookworm) echo /; exit 0 ;;
    bookworm-image) expected=44 ;;
    trixie) expected=56 ;;
    sid) expected=65 ;;
    *) wrong_usage "expected one of bookworm, bookworm-image, trixie, sid" ;;
esac
[ $# -eq 1 ] || wrong_usage "one release at a time"
release=$1

# Named after what goes in, so that another package list makes another tree.
key=$(echo "$release $packages $expected" | sha256sum | cut -c1-12)
root=$cache_dir/root-$release-$key

# The suites were chosen for their private ABI; another release would silently test another one.
check_version() {
    local version
    version=$(dpkg-query --admindir="$1/var/lib/dpkg" --show --showformat='${Version}' rdma-core)
    [ "${version%%.*}" = "$expected" ] ||
        skip "$release now has rdma-core $version, these tests need $expected.x"
}

if [ ! -d "$root" ]; then
    need debootstrap debootstrap
    [ "$(id -u)" = 0 ] || skip "debootstrap needs root to make the $release tree"
    # shellcheck disable=SC2016 # apt expands it
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
        'Origin: Debian' 'Label: Debian' 'Component: main' | sort -u | head -n 1)
    [ -n "$mirror" ] || skip "apt knows no Debian mirror; run apt-get update"

    lock "root-$release"
fi
if [ ! -d "$root" ]; then
    say "debootstrap of $release, about a minute"
    partial=$cache_dir/.partial-$release
    log=$cache_dir/root-$release.log
    # --one-file-system: a debootstrap that was killed may have left /proc mounted in there.
    rm -rf --one-file-system "$partial"
    if ! debootstrap --variant=minbase --include="$packages" "${release%-image}" "$partial" "$mirror" >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        rm -rf --one-file-system "$partial"
        say "debootstrap of $release failed, all of its output is in $log"
        exit 1
    fi
    check_version "$partial"
    rm -rf "$partial"/var/cache/apt/archives/*.deb
    mv -T "$partial" "$root"
fi
check_version "$root"
echo "$root"
