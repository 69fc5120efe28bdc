#!/bin/bash
# rpm.sh: builds the RPM packages of HEAD twice, as two releases, has rpmlint look at them, and installs, upgrades and removes them
# in a root that has an rpm database of its own (rpm_cycle.sh), with packages that stand for a Red Hat's (rpm_root.sh).
# Root only; the last line is 'N passed, N failed'.
set -u
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
# shellcheck source=test/integration/tap.sh
. "$source/test/integration/tap.sh"
build=${RDMAQUOTA_BUILD:-$source/build}/rpm-test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=test/packages/rpm_root.sh
. "$here/rpm_root.sh"

# lint FILE...: with the findings that rdmaquota.rpmlintrc gives reasons for left out
lint() { rpmlint -r "$source/rdma-core.d/rpm/rdmaquota.rpmlintrc" "$@"; }
# next_release: the same as release 2; the compiler cache has what it compiles
next_release() { rpmbuild -bb --nodeps --define "_topdir $build/rpm" --define 'baserelease 2' "$build/rpm/SPECS/rdmaquota.spec"; }
stubs() {
    local package
    mkdir "$work/unpacked"
    for package in "$work"/repo/rdmaquota{,d}-[0-9]*-1.*.rpm; do (cd "$work/unpacked" && rpm2cpio "$package" | cpio -idm --quiet); done
    base "$work/unpacked/usr/bin/rdmaquota" "$work/unpacked/usr/sbin/rdmaquotad" &&
        libibverbs 44 34 && libibverbs 57 57 && libibverbs 61 59 && libibverbs 99 99 && vendor_mlx5 && slurm
}

succeeds "the packages are built from a source archive" "$source/tools/package.sh" --output "$build" --rpm
succeeds "and as the next release" next_release
mkdir "$work/repo"
find "$build/rpm/RPMS" -name '*.rpm' -exec cp -t "$work/repo" {} +
is "there are four, and debug symbols where rpm makes such packages" "$(find "$work/repo" -name '*-1.*.rpm' ! -name '*debug*' | wc -l)" 4
succeeds "rpmlint has nothing against them" lint "$build/rpm/SPECS/rdmaquota.spec" "$work"/repo/*-1.*.rpm "$build"/rpm/SRPMS/*.rpm
succeeds "the source archive names its specification" rpmbuild -ts --define "_topdir $work/again" "$build"/rpm/SOURCES/*.tar.gz

# Debian's rpm has a database for each user, and a Red Hat one for the system.
export HOME=$work
echo '%_dbpath /var/lib/rpm' > "$work/.rpmmacros"
succeeds "there are packages that stand for the system's" stubs
succeeds "a repository is made of them" createrepo_c "$work/repo"
unshare --mount --propagation private bash "$here/rpm_cycle.sh" "$work" > "$work/part" 2>&1
grep -E '^(ok|not ok|    #)' "$work/part"
if read -r p _ f _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/part"); then
    passed=$((passed + p)) failed=$((failed + f))
else
    not_ok "rpm_cycle.sh ended without its counts" "$(tail -n 5 "$work/part")"
fi
finish
