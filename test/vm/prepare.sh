#!/bin/bash
# prepare.sh [RELEASE]: makes what run.sh boots and prints the directory that holds it.
#
# RELEASE is the Debian release whose kernel it is: this machine's own if none is named, or trixie or sid.
#
# In it: vmlinux (Debian's kernel, uncompressed), modules/ (its module tree), base.cpio (busybox and
# the modules needed before that tree can be seen), release (the kernel's release) and headers/ (what a
# module is built against: make -C headers/build).
# The kernel is the package that Debian's linux-image-amd64 depends on, taken with apt-get download and installed
# nowhere, like its linux-headers, which only this machine's own release gets. All is kept in ${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota},
# made anew when this script or busybox changes; delete the directory to take a newer kernel.
# Exit status: 0 done, 1 failed, 2 wrong usage, 77 not possible here (SKIP: and the reason on stderr).
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# Loaded in this order, with what each depends on: first what carries output and the file system. rdma_rxe asks the
# kernel for crc32 by its crypto alias, which needs a module tree; so it is there before.
boot_modules="virtio_pci virtio_console 9p 9pnet_virtio overlay dummy crc32_generic crc32_pclmul ib_uverbs rdma_ucm rdma_rxe"

other=''
case ${1-} in
    --help | -h) usage; exit 0 ;;
    trixie | sid) other=$1 ;;
    ?*) wrong_usage "expected trixie, sid or nothing" ;;
esac

PATH=$PATH:/usr/sbin:/sbin
need busybox busybox-static
key=$(cat "$0" "$(command -v busybox)" | sha256sum | cut -c1-12)
guest=$cache_dir/guest-${other:+$other-}$key
[ ! -d "$guest" ] || { echo "$guest"; exit 0; }

need dpkg-deb dpkg
need modprobe kmod
need cpio cpio
need xz xz-utils

# apt COMMAND...: apt-get or apt-cache; for another release than this machine's, with lists of its own
apt() {
    local program=$1
    shift
    if [ -z "$other" ]; then
        "$program" "$@"
    else
        "$program" -o Dir::Etc::sourcelist="$PWD/apt.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/apt" \
            -o Dir::Cache="$PWD/apt" "$@"
    fi
}

# Debian's own keys also sign its other releases.
use_other_release() {
    local mirror
    # shellcheck disable=SC2016 # apt expands it
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
        'Component: main' | sort -u | head -n 1)
    [ -n "$mirror" ] || skip "apt knows no Debian mirror; run apt-get update"
    mkdir -p apt/partial apt/archives/partial
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $other main" >apt.list
    apt apt-get update --quiet >apt.log 2>&1 || skip "apt cannot read the lists of $other"
}

# depends PACKAGE PATTERN: the names among its dependencies that match
depends() { apt apt-cache depends --important "$1" 2>/dev/null | sed -n "s/^ *Depends: \\($2\\)\$/\\1/p"; }

# The kernel, the headers of the same release, and what these are made of: the common ones and the build's own programs.
# Stale package lists name files that a mirror no longer has: once, as root, they are refreshed.
download_kernel() {
    local meta=linux-image-amd64 package wanted
    package=$(depends "$meta" 'linux-image-[^ ]*')
    # Newer kernels come in parts.
    wanted="$package $(depends "$package" 'linux-\(base\|binary\|modules\)-[0-9][^ ]*')"
    if [ -z "$other" ]; then
        wanted+=" linux-headers-${package#linux-image-} $(depends "linux-headers-${package#linux-image-}" 'linux-[hk][^ ]*')"
    fi
    # shellcheck disable=SC2086 # one word each
    if [ -n "$package" ] && apt apt-get download --quiet $wanted >apt.log 2>&1; then
        return
    fi
    [ "${1-}" != again ] && [ "$(id -u)" = 0 ] && apt-get update --quiet >apt.log 2>&1 && download_kernel again && return
    [ ! -e apt.log ] || tail -n 3 apt.log >&2
    skip "apt cannot download ${package:-what $meta depends on}; run apt-get update as root"
}

# A bzImage is a loader and an xz or zstd stream, whose place the boot protocol tells (setup_sects, payload_offset,
# payload_length). Unpacking it here instead of in an emulated CPU saves more than half of the boot;
# QEMU boots the ELF by its PVH entry. The stream is followed by 4 bytes that are not of it.
unpack_vmlinux() {
    local sectors offset length decompress=xz
    sectors=$(od -An -tu1 -j 497 -N1 "$1")
    read -r offset length < <(od -An -tu4 -j 584 -N8 "$1")
    tail -c +$(((sectors + 1) * 512 + offset + 1)) "$1" | head -c $((length - 4)) >stream
    [ "$(od -An -tx4 -N4 stream)" != " fd2fb528" ] || decompress=zstd
    need $decompress $decompress
    $decompress -dc <stream >vmlinux
    rm stream
}

# The packages are made to lie in /usr/src; only one file says so.
unpack_headers() {
    local package
    mkdir headers
    for package in ./linux-headers-*.deb ./linux-kbuild-*.deb; do
        dpkg-deb --extract "$package" headers
    done
    sed -i "s,/usr/src/,$guest/headers&," "headers/usr/src/linux-headers-$1/Makefile"
    ln -s "usr/src/linux-headers-$1" headers/build
}

make_base() {
    local module applet
    mkdir -p base/bin base/modules base/job
    cp "$(command -v busybox)" base/bin/busybox
    for applet in $(busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "base/bin/$applet"
    done
    for module in $boot_modules; do
        # Newer kernels have some of them built in.
        modprobe -d . -S "$1" --show-depends "$module" 2>/dev/null || [ -n "$other" ]
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r module; do
        case $module in
            *.xz) xz -dc "$module" >"base/modules/$(basename "$module" .xz)" ;;
            *) cp "$module" base/modules/ ;;
        esac
        basename "$module" .xz
    done >base/order
    mv base/order base/modules/order
    # Not compressed: reading it is cheap for the host, inflating it is not for the guest.
    (cd base && find . | cpio --create --format=newc --owner=0:0 --quiet) >base.cpio
}

lock "guest${other:+-$other}"
[ ! -d "$guest" ] || { echo "$guest"; exit 0; }

say "preparing the guest's kernel, once"
partial=$cache_dir/.partial-guest${other:+-$other}
rm -rf "$partial"
mkdir "$partial"
cd "$partial"
[ -z "$other" ] || use_other_release
download_kernel
for package in ./linux-image-*.deb ./linux-base-*.deb ./linux-binary-*.deb ./linux-modules-*.deb; do
    [ ! -e "$package" ] || dpkg-deb --extract "$package" .
done
[ -e lib ] || ln -s usr/lib lib
release=$(ls lib/modules)
echo "$release" >release
[ -e "lib/modules/$release/kernel/drivers/infiniband/sw/rxe" ] || skip "kernel $release has no rdma_rxe"
depmod -b . "$release"
[ -n "$other" ] || unpack_headers "$release"
image=boot/vmlinuz-$release
[ -e "$image" ] || image=lib/modules/$release/vmlinuz
unpack_vmlinux "$image" || { say "cannot unpack kernel $release: not a bzImage of xz or zstd"; exit 1; }
make_base "$release"
mv "lib/modules/$release" modules
rm -rf base boot lib usr etc apt apt.list ./*.deb apt.log
mv -T "$partial" "$guest"
echo "$guest"
