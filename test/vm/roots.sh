#!/bin/bash
# roots.sh RELEASE: prints a directory holding a Debian release's root filesystem, for run.sh --root.
#
# RELEASE is trixie (rdma-core 56, PABI 34), sid (rdma-core 65, PABI 65), bookworm (this machine: /), or a tree of that
# release (rdma-core 44): bookworm-image for containers, bookworm-podman and bookworm-slurm for what runs containers and
# jobs. These two also have what rdmaquota's packages depend on, for installing them where there is no network.
# The tree is made once with debootstrap, from the mirror this machine's apt uses, and kept in
# ${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota}. Delete the directory to renew it.
# Exit status: 0 done, 1 failed, 2 wrong usage, 77 not possible here (SKIP: and the reason on stderr).
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# rdmacm-utils brings librdmacm, whose own package name differs by release.
packages=ibverbs-utils,ibverbs-providers,libibverbs1,rdmacm-utils,perftest,rdma-core,iproute2
depended_on="libbpf1 libmicrohttpd12 libnl-3-200 libnl-route-3-200 libsystemd0"
# Installed by apt-get, since debootstrap cannot order packages with many dependencies.
more=''

case ${1-} in
    --help | -h) usage; exit 0 ;;
    bookworm) echo /; exit 0 ;;
    bookworm-image) expected=44 ;;
    bookworm-podman) expected=44 more="$depended_on podman crun conmon gcc linux-libc-dev musl-tools python3" ;;
    bookworm-slurm)
        expected=44
        more="$depended_on systemd dbus munge slurmctld slurmd slurm-client slurmdbd mariadb-server python3"
        ;;
    trixie) expected=56 ;;
    sid) expected=65 ;;
    *) wrong_usage "expected one of bookworm, bookworm-image, bookworm-podman, bookworm-slurm, trixie, sid" ;;
esac
[ $# -eq 1 ] || wrong_usage "one release at a time"
release=$1

# Named after what goes in, so that another package list makes another tree.
key=$(echo "$release $packages $expected${more:+ $more}" | sha256sum | cut -c1-12)
root=$cache_dir/root-$release-$key

# The suites were chosen for their private ABI; another release would silently test another one.
check_version() {
    local version
    version=$(dpkg-query --admindir="$1/var/lib/dpkg" --show --showformat='${Version}' rdma-core)
    [ "${version%%.*}" = "$expected" ] ||
        skip "$release now has rdma-core $version, these tests need $expected.x"
}

# install_more: in the tree that is being made. No daemon starts there.
install_more() {
    printf '#!/bin/sh\nexit 101\n' > "$partial/usr/sbin/policy-rc.d"
    chmod 755 "$partial/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2016,SC2086 # expanded by the inner shell; a list
    unshare --mount --pid --fork --kill-child sh -ec 'mount --make-rprivate /
        mount -t proc proc "$0/proc"
        exec env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 chroot "$0" "$@"' \
        "$partial" apt-get install -y -qq --no-install-recommends $more
}

make_tree() {
    debootstrap --variant=minbase --include="$packages" "${release%-*}" "$partial" "$mirror" || return
    [ -z "$more" ] || install_more
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
    say "debootstrap of $release, one to three minutes"
    partial=$cache_dir/.partial-$release
    log=$cache_dir/root-$release.log
    # --one-file-system: a debootstrap that was killed may have left /proc mounted in there.
    rm -rf --one-file-system "$partial"
    if ! make_tree >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        rm -rf --one-file-system "$partial"
        say "the tree of $release cannot be made, all of its output is in $log"
        exit 1
    fi
    check_version "$partial"
    rm -rf "$partial"/var/cache/apt/archives/*.deb
    mv -T "$partial" "$root"
fi
check_version "$root"
echo "$root"
