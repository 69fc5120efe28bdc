#!/bin/bash
# run.sh [RELEASE...]: builds the packages of each release (default: bookworm, trixie, sid and arm64) and tests them there: two
# builds are the same, lintian has nothing against them, cycle.sh (install, upgrade, remove, purge), the main job in the guest
# from what the packages installed (in_guest.sh), the units under the release's systemd and kernel (units.sh), and, for the
# release of this machine, upgrades under load (upgrade.sh). `arm64` is Debian 12's packages for that architecture (arm64.sh).
# Root only; the last line is 'N passed, N failed'.
set -u
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
# shellcheck source=test/integration/tap.sh
. "$repo/test/integration/tap.sh"
# shellcheck source=tools/package.sh
. "$repo/tools/package.sh"
set +e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=$work
build=${RDMAQUOTA_BUILD:-$repo/build}
own=$(. /etc/os-release && echo "$VERSION_CODENAME")

# What the tests need in a release's root besides what the packages are built with.
needed=(lintian man-db ibverbs-utils ibverbs-providers rdma-core iproute2 init-system-helpers slurm-wlm-basic-plugins
    slurm-client autopkgtest kmod systemd dbus)

# above ROOT COMMAND...: COMMAND with THROWAWAY, which is ROOT with a tmpfs above it
above() {
    ROOT=$1 THROWAWAY=$work/throwaway unshare --mount bash -c '
        set -eu
        mount --make-rprivate /
        mkdir -p "$THROWAWAY"
        mount -t tmpfs tmpfs "$THROWAWAY"
        mkdir "$THROWAWAY/upper" "$THROWAWAY/work" "$THROWAWAY/root"
        mount -t overlay -o "lowerdir=$ROOT,upperdir=$THROWAWAY/upper,workdir=$THROWAWAY/work" overlay "$THROWAWAY/root"
        THROWAWAY+=/root
        "$@"' above "${@:2}"
}
export -f in_root

# bring SCRIPT DIR...: a script and what it needs, to THROWAWAY
bring() {
    mkdir -p "$THROWAWAY/test/integration"
    cp "$repo/test/integration/tap.sh" "$THROWAWAY/test/integration/"
    cp "$repo/test/processes.sh" "$repo/test/packages/$1" "$THROWAWAY/test/"
    cp -r "${@:2}" "$THROWAWAY/"
}

cycle() {
    bring cycle.sh "$1" "$2"
    in_root "$THROWAWAY" bash /test/cycle.sh /old /new
}

arm64() {
    rm -rf "$THROWAWAY/build"
    bring arm64.sh "$1" "$2"
    in_root "$THROWAWAY" bash /test/arm64.sh /native
}
export -f bring cycle arm64
export repo

# count NAME: shows the checks of a part, which printed its counts last, and adds them
count() {
    local p f
    grep -E '^(ok|not ok|    #)' "$work/part"
    if read -r p _ f _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/part" | tail -n 1); then
        passed=$((passed + p)) failed=$((failed + f))
    else
        not_ok "$1 ended without its counts" "$(tail -n 5 "$work/part")"
    fi
}

# newer FROM TO: the packages in FROM as those of a next version
newer() {
    local deb
    mkdir -p "$2"
    for deb in "$1"/*.deb; do
        rm -rf "$2/unpacked"
        dpkg-deb -R "$deb" "$2/unpacked"
        sed -i -e '/^Version:/s/$/.1/' -e 's/\(rdmaquota[a-z-]* (= [^)]*\))/\1.1)/g' "$2/unpacked/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$2/unpacked" "$2/${deb##*/}" > /dev/null
    done
    rm -rf "$2/unpacked"
}

# take RELEASE: the packages that other suites run from too
take() {
    local debs
    debs=$("$here/debs.sh" "$1") && cp -r "$debs" "$packages/$1"
}

# lint ROOT DIR: the packages in DIR
lint() {
    rm -rf "$1/packages" && cp -r "$2" "$1/packages"
    in_root "$1" sh -c 'lintian --allow-root --fail-on error,warning /packages/*.changes'
}

# Its packages must lie where the guest sees them: in the build directory.
in_guest() {
    local debs=$build/packages-test
    rm -rf "$debs" && mkdir -p "$debs" && cp -r "$work/old" "$work/new" "$debs"
    "$repo/test/vm/run.sh" --device both --root "$1" -- bash "$here/in_guest.sh" "$build" "$debs/old" "$debs/new"
}

# in_system ROOT RELEASE
in_system() {
    local kernel=()
    [ "$2" = "$own" ] || kernel=(--kernel "$2")
    "$repo/test/vm/run.sh" --systemd ${kernel+"${kernel[@]}"} --root "$1" -- bash "$here/units.sh" "$build" "$build/packages-test/old"
}

# examine DIR ROOT: the packages in DIR, and their debug symbols
examine() {
    local deb name file id unpacked=$work/unpacked triplet
    triplet=$(in_root "$2" dpkg-architecture -qDEB_HOST_MULTIARCH)
    for deb in "$1"/*.deb; do
        name=${deb##*/}
        case $name in *-dbgsym_*) continue ;; esac
        rm -rf "$unpacked" && dpkg-deb -x "$deb" "$unpacked"
        dpkg-deb -x "$1/${name/_/-dbgsym_}" "$unpacked/symbols" || not_ok "$name has debug symbols"
        while read -r file; do
            id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
            succeeds "there are debug symbols of ${file##*/}" test -e "$unpacked/symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
        done < <(find "$unpacked/usr" ! -path '*/shadows/*' -type f \( -name '*.so' -o -path '*bin/*' \))
        [[ $name != librdmaquota-provider_* ]] || examine_provider "$unpacked" "$triplet"
    done
}

# examine_provider DIR TRIPLET: two architectures of its package can be installed side by side, and an older glibc loads it
examine_provider() {
    local newest
    is "no file that all architectures of the provider share names one" \
        "$(find "$1/usr/share" "$1/etc" -type f -exec zgrep -l "$2" {} + 2> /dev/null)" ""
    newest=$(objdump -T "$1/usr/lib/$2/libibverbs/librdmaquota.so" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    is "the provider needs no glibc newer than 2.34" "$(printf '%s\n' "${newest:-none}" GLIBC_2.34 | sort -V | tail -n 1)" GLIBC_2.34
}

# Version 0.1 to these packages, and these to newer ones, while programs and the sidecar run. The guest is this machine's system.
upgrade() {
    local stage debs=$build/packages-test
    stage=$("$repo/test/vm/older.sh" "$build") || return
    "$repo/test/vm/run.sh" --systemd --timeout 1800 -- bash "$here/upgrade.sh" "$build" "$debs/old" "$debs/new" "$stage"
}

test_release() {
    local release=$1 root first
    succeeds "$release: the packages are built" take "$release" || return
    [ -d "$packages/$release" ] || return
    root=$(build_root "$release")
    quietly "$root.log" in_root "$root" apt-get install -y -qq --no-install-recommends "${needed[@]}" ||
        not_ok "$release: what the tests need is installed"
    succeeds "$release: lintian has nothing against them" lint "$root" "$work/$release"
    examine "$work/$release" "$root"
    rm -rf "$work/old" "$work/new"
    cp -r "$work/$release" "$work/old" && rm -f "$work"/old/*-dbgsym*
    newer "$work/old" "$work/new"
    above "$root" cycle "$work/old" "$work/new" > "$work/part" 2>&1
    count "$release: cycle.sh"
    in_guest "$root" > "$work/part" 2>&1
    count "$release: in_guest.sh"
    in_system "$root" "$release" > "$work/part" 2>&1
    count "$release: units.sh"
    if [ "$release" = "$own" ]; then
        upgrade > "$work/part" 2>&1
        count "$release: upgrade.sh"
    fi
    first=$work/$release.first
    mv "$work/$release" "$first"
    # Nothing of it by the first build's compiler cache.
    succeeds "$release: the packages are built again" for_release "$release"
    is "$release: and are the same" "$(cd "$first" && sha256sum -- *.deb *.dsc *.tar.xz)" \
        "$(cd "$work/$release" && sha256sum -- *.deb *.dsc *.tar.xz)"
}

test_arm64() {
    rm -rf "$packages/bookworm"
    succeeds "arm64: there are packages of this architecture" take bookworm || return
    [ -d "$packages/bookworm" ] || return
    mkdir "$work/build"
    source_in "$work/build" bookworm > /dev/null
    mv "$packages/bookworm" "$work/native"
    lock bookworm
    above "$(build_root bookworm)" arm64 "$work/native" "$work/build" > "$work/part" 2>&1
    exec 7>&-
    count "arm64: arm64.sh"
}

succeeds "packages of this commit are newer than those of version 0.1.0" dpkg --compare-versions "$version" gt 0.1.0
case $version in
    *~*) succeeds "and older than the release" dpkg --compare-versions "$version" lt "${version%%~*}" ;;
esac
[ $# != 0 ] || set -- bookworm trixie sid arm64
for release in "$@"; do
    if [ "$release" = arm64 ]; then test_arm64; else test_release "$release"; fi
done
finish
