#!/bin/bash
# package.sh: builds the Debian or RPM packages from what is committed (HEAD).
#
#   tools/package.sh [--output DIR]              for the Debian that it runs on, with the packages that are installed here
#   tools/package.sh [--output DIR] RELEASE...   for bookworm, trixie or sid, in a fresh root each, kept for the next time
#                                                (root only)
#   tools/package.sh [--output DIR] --source     only the archive from which rpmbuild builds (rpmbuild -ta)
#   tools/package.sh [--output DIR] --rpm [OPTION...]  RPM packages for this machine, with rpmbuild's options
#
# DIR (default: build/packages, a directory for each release in it) gets the .deb files, those with debug symbols
# (-dbgsym), the source package and the .changes file. The version is meson.build's, the changelog is CHANGELOG.md's,
# the date is that of the commit: two builds of a commit are the same, byte for byte. While the newest section of
# CHANGELOG.md is [Unreleased], the version is VERSION~gitTIME, with the commit's time: newer than earlier commits'
# packages, and older than VERSION.
#
# RDMAQUOTA_COMPILER_CACHE=yes: what an earlier build of a RELEASE has compiled is not compiled again (ccache, in its root).
set -eu
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=$repo/build/packages
# Beside the test guest's roots.
roots=${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota}

# version_of REPO: that of its packages, by what is committed, without what tells the Debian
version_of() {
    local version newest
    version=$(git -C "$1" show HEAD:meson.build | sed -n "s/^  version: '\(.*\)',\$/\1/p")
    newest=$(git -C "$1" show HEAD:CHANGELOG.md | sed -n 's/^## \[\([^]]*\)\].*/\1/p' | head -n 1)
    case $newest in
        Unreleased) echo "$version~git$(TZ=UTC git -C "$1" log -1 --format=%cd --date=format-local:%Y%m%d%H%M%S)" ;;
        "$version") echo "$version" ;;
        *) echo "package.sh: the version is $version in meson.build and $newest in CHANGELOG.md" >&2; return 1 ;;
    esac
}
version=$(version_of "$repo")

# suffix RELEASE: what makes the version of a later Debian the larger one.
suffix() {
    case $1 in
        bookworm) echo +deb12 ;;
        trixie) echo +deb13 ;;
        sid) echo +sid ;;
        *) echo "package.sh: unknown release '$1': bookworm, trixie or sid" >&2; return 1 ;;
    esac
}

# changelog RELEASE: debian/changelog, from the newest section of CHANGELOG.md.
changelog() {
    echo "rdmaquota ($version$(suffix "$1")) $1; urgency=medium"
    echo
    # Without Markdown; each item in one line, and then in lines as long as lintian wants them.
    sed -n '/^## /,$p' "$repo/CHANGELOG.md" | sed -E '1d; /^## /,$d; s/[*][*]//g; s/\[[^]]*\]\(([^)]*)\)/\1/g' | awk '
        /^### / { flush(); print "  [ " substr($0, 5) " ]" }
        /^- / { flush(); item = substr($0, 3) }
        /^  / { item = item substr($0, 2) }
        END { flush() }
        function flush() {
            if (item == "") return
            line = "  *"
            n = split(item, words, " ")
            for (i = 1; i <= n; ++i) {
                if (length(line " " words[i]) > 78) { print line; line = "   " }
                line = line " " words[i]
            }
            print line
            item = ""
        }'
    echo
    echo " -- $(sed -n 's/^Maintainer: //p' "$repo/debian/control")  $(git -C "$repo" log -1 --format=%aD)"
}

# tree_in DIR: what is committed, in DIR/rdmaquota-VERSION
tree_in() {
    local tree=$1/rdmaquota-$version
    mkdir -p "$tree" || return
    git -C "$repo" archive HEAD | tar -x -C "$tree" || return
    echo "$tree"
}

# source_in DIR RELEASE: the same as a Debian package's source
source_in() {
    local tree
    tree=$(tree_in "$1") || return
    changelog "$2" > "$tree/debian/changelog"
    echo "$tree"
}

collect() {
    local from=$1 to=$packages/$2
    rm -rf "$to" && mkdir -p "$to"
    find "$from" -maxdepth 1 -type f ! -name '*.log' -exec cp -p -t "$to" {} +
    echo "$to: $(find "$to" -name '*.deb' | wc -l) packages of version $version$(suffix "$2")"
}

# With what the package is built with.
build_root() {
    local release=$1 root=$roots/build-root-$1 mirror
    if [ ! -e "$root/.complete" ]; then
        rm -rf --one-file-system "$root"
        # shellcheck disable=SC2016 # apt expands it
        mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
            'Component: main' | sort -u | head -n 1)
        debootstrap --variant=buildd "$release" "$root" "$mirror" > "$root.log" 2>&1 ||
            { tail -n 3 "$root.log" >&2; return 1; }
        touch "$root/.complete"
    fi
    echo "$root"
}

# in_root ROOT COMMAND...: with mounts and processes of its own
in_root() {
    local root=$1
    shift
    ROOT=$root unshare --mount --pid --fork --kill-child bash -c '
        set -eu
        mount --make-rprivate /
        mount -t proc proc "$ROOT/proc"
        mount --rbind /dev "$ROOT/dev"
        mount -t tmpfs tmpfs "$ROOT/tmp"
        exec chroot "$ROOT" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' in_root "$@" < /dev/null
}

# quietly LOG COMMAND...: when it fails, says what was wrong, and where all of it stands
quietly() {
    local log=$1
    shift
    "$@" > "$log" 2>&1 && return
    { grep -E 'error|^E:|not found' "$log" || cat "$log"; } | cut -c1-300 | tail -n 5 >&2
    echo "package.sh: failed; all of it is in $log" >&2
    return 1
}

# lock RELEASE: a root is one run's at a time, until the next call or the shell's end.
lock() {
    mkdir -p "$roots" && exec 7> "$roots/build-root-$1.lock" || return
    flock -n 7 && return
    echo "package.sh: waits for another run, which builds for $1" >&2
    flock 7
}

# caching ROOT TREE: the variables by which a build there takes what others have compiled, or nothing
caching() {
    [ "${RDMAQUOTA_COMPILER_CACHE-}" ] || { echo CCACHE_DISABLE=1; return; }
    quietly "$1.log" in_root "$1" apt-get install -y -qq --no-install-recommends ccache || return
    printf '%s\n' CCACHE_DIR=/ccache "CCACHE_BASEDIR=$2" CCACHE_MAXSIZE=1G
}

for_release() {
    local release=$1 root tree cache
    lock "$release" || return
    root=$(build_root "$release") || return
    rm -rf --one-file-system "$root/build" && mkdir "$root/build" || return
    tree=$(source_in "$root/build" "$release") || return
    # A root that was kept knows the packages of a day that is long gone. A mirror may be weeks behind, too.
    quietly "$root.log" in_root "$root" apt-get update -qq -o Acquire::Check-Valid-Until=false || return
    quietly "$root.log" in_root "$root" apt-get build-dep -y -qq --no-install-recommends "/build/${tree##*/}" || return
    cache=$(caching "$root" "/build/${tree##*/}") || return
    # shellcheck disable=SC2086 # a word each
    quietly "$tree.log" in_root "$root" env $cache sh -c "cd /build/${tree##*/} && exec dpkg-buildpackage -us -uc" || return
    collect "$root/build" "$release"
}

for_this_debian() {
    local release work tree
    release=$(. /etc/os-release && case $PRETTY_NAME in */sid) echo sid ;; *) echo "$VERSION_CODENAME" ;; esac)
    suffix "$release" > /dev/null || return
    work=$(mktemp -d)
    tree=$(source_in "$work" "$release")
    quietly "$tree.log" env -C "$tree" dpkg-buildpackage -us -uc
    collect "$work" "$release"
    rm -rf "$work"
}

# rpm_spec: the specification with the version and the commit
rpm_spec() {
    sed "s/^Version:        0$/Version:        $version/" "$repo/rdma-core.d/rpm/rdmaquota.spec"
    echo "* $(git -C "$repo" log -1 --format=%cd --date=format:'%a %b %d %Y') $(sed -n 's/^Maintainer: //p' "$repo/debian/control") - $version-1"
    echo "- Changes are in CHANGELOG.md."
}

# rpm_source DIR: the archive there, with the specification in it
rpm_source() {
    local tree
    tree=$(tree_in "$1") || return
    rpm_spec > "$tree/rdma-core.d/rpm/rdmaquota.spec"
    tar -C "$1" --sort=name --owner=0 --group=0 --mtime="@$(git -C "$repo" log -1 --format=%ct)" -cz -f "$tree.tar.gz" "${tree##*/}"
    rm -r "$tree"
}

# rpms OPTION...: a system without packages by rpm, such as Debian, has what is needed without rpm's knowledge
rpms() {
    local top=$packages/rpm
    rm -rf "$top" && mkdir -p "$top/SOURCES" "$top/SPECS" && rpm_source "$top/SOURCES" && rpm_spec > "$top/SPECS/rdmaquota.spec" || return
    rpm -q rpm-build > /dev/null 2>&1 || set -- --nodeps "$@"
    quietly "$packages/rpm.log" rpmbuild -ba --define "_topdir $top" "$@" "$top/SPECS/rdmaquota.spec" || return
    echo "$top: $(find "$top/RPMS" -name '*.rpm' | wc -l) packages of version $version"
}

# Another script may take the functions alone.
[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

if [ "${1:-}" = --output ] && [ $# -ge 2 ]; then packages=$2; shift 2; fi
case ${1:-} in
    --source) mkdir -p "$packages" && rpm_source "$packages"; exit ;;
    --rpm) packages=$(realpath -m "$packages") && rpms "${@:2}"; exit ;;
    -*) sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; exit 2 ;;
esac
if [ $# = 0 ]; then
    for_this_debian
else
    for release in "$@"; do suffix "$release" > /dev/null || exit 2; done
    for release in "$@"; do for_release "$release"; done
fi
