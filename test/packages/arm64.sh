#!/bin/bash
# arm64.sh NATIVE: builds the packages for arm64 from /build/rdmaquota-VERSION by Debian's cross compiler, installs the provider
# beside that of this architecture, whose packages are in NATIVE, and runs commands of arm64 in QEMU's emulator of programs.
# No kernel of arm64 is run. Runs as root in a Debian root that can be thrown away, with /test/integration/tap.sh, and where
# apt can fetch packages.
set -u
native=$1
# shellcheck source=test/integration/tap.sh
. /test/integration/tap.sh
export DEBIAN_FRONTEND=noninteractive
own=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
foreign=/usr/lib/aarch64-linux-gnu
driver=/etc/libibverbs.d/rdmaquota.driver
conf=/etc/ld.so.conf.d/00-rdmaquota.conf

cross_build() {
    dpkg --add-architecture arm64 &&
        apt-get update -qq -o Acquire::Check-Valid-Until=false &&
        cd /build/rdmaquota-*/ &&
        apt-get build-dep -y -qq --no-install-recommends --host-architecture arm64 . &&
        apt-get install -y -qq --no-install-recommends crossbuild-essential-arm64 qemu-user-static file \
            ibverbs-providers ibverbs-providers:arm64 &&
        dpkg-buildpackage --host-arch arm64 --build-profiles=cross,nocheck -b -us -uc
}

# machines DIR: for which ones what is in DIR is compiled
machines() { find "$1" -type f -exec file -b {} + | sed -n 's/^ELF [^,]*, \([^,]*\),.*/\1/p' | sort -u; }

# on KERNEL COMMAND...: a command of arm64, which is told that this is its kernel
on() { qemu-aarch64-static -r "$1" "/arm64/usr/$2" "${@:3}" 2>&1; }

succeeds "the packages for arm64 are built" cross_build
for deb in /build/*_arm64.deb; do
    case $deb in *-dbgsym_*) ;; *) dpkg-deb -x "$deb" /arm64 ;; esac
done
is "there are all four" "$(find /build -name '*_arm64.deb' ! -name '*-dbgsym_*' | wc -l)" 4
is "what is compiled in them is for arm64" "$(machines /arm64/usr)" "ARM aarch64"

succeeds "the provider is installed for both architectures" dpkg -i "$native"/librdmaquota-provider_*.deb \
    /build/librdmaquota-provider_*_arm64.deb
is "files are as they were packed" "$(dpkg --verify librdmaquota-provider)" ""
is "libibverbs is told of it" "$(cat $driver)" "driver rdmaquota"
is "and the loader of the shadows of both" "$(sort $conf)" "$(printf '%s\n' "$own" $foreign | sed 's|$|/rdmaquota/shadow|' | sort)"
for libraries in "$own" $foreign; do
    is "libmlx5 of $libraries has one" "$(readlink -e "$libraries/rdmaquota/real/libmlx5.so.1")" "$(readlink -e "$libraries/libmlx5.so.1")"
done
needed=$(qemu-aarch64-static /lib/ld-linux-aarch64.so.1 --list $foreign/libibverbs/librdmaquota-rdmav34.so 2>&1)
has "arm64's loader finds what the provider needs" "$needed" "libc.so.6 => /lib/aarch64-linux-gnu/libc.so.6"
lacks "all of it" "$needed" "not found"
succeeds "one of them is removed" dpkg -r librdmaquota-provider:"$(dpkg --print-architecture)"
is "the other stays registered" "$(cat $driver $conf)" "driver rdmaquota
$foreign/rdmaquota/shadow"
succeeds "and is removed" dpkg -r librdmaquota-provider:arm64
is "which leaves nothing" "$(ls $driver $conf $foreign/rdmaquota "$own/rdmaquota" 2> /dev/null)" ""

has "the command runs" "$(on 6.12.0 bin/rdmaquota --version)" "rdmaquota 0."
has "and puts a policy in force" "$(on 6.12.0 bin/rdmaquota reload /arm64/etc/rdmaquota/rdmaquota.toml)" "is in force"
has "doctor says that a kernel is too old for the guard there" "$(on 6.1.0 bin/rdmaquota doctor)" \
    "guard: off; it could not be had here: the kernel is 6.1.0, and it needs 6.4 or newer on aarch64"
told=$(on 6.4.0 bin/rdmaquota doctor)
has "and of one that is not" "$told" "guard: off; "
lacks "nothing of the kind" "$told" "or newer on"
has "the sidecar runs, and says what it cannot see" "$(timeout 20 qemu-aarch64-static /arm64/usr/sbin/rdmaquotad 2>&1)" \
    "rdmaquotad: not seen: "
finish
