#!/bin/bash
# accelerator.sh GUEST: prints how QEMU is to run the guest that prepare.sh has made in the directory GUEST: `kvm` where this
# machine boots a stock kernel under KVM within five seconds, else `tcg`. /dev/kvm alone says little: a nested KVM may refuse
# the guest, or run it slower than TCG does. What was found is kept in the cache, since a machine seldom changes:
# delete the file `accelerator` there to look again. RDMAQUOTA_ACCELERATOR=kvm or tcg decides without looking.
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

boots_under_kvm() {
    local directory status=0
    [ -r /dev/kvm ] && [ -w /dev/kvm ] || return 1
    directory=$(mktemp -d)
    printf '#!/bin/busybox sh\n/bin/busybox echo booted > /dev/ttyS0\n/bin/busybox reboot -f\n' > "$directory/init"
    chmod 755 "$directory/init"
    {
        cat "$1/base.cpio"
        (cd "$directory" && echo init | cpio --create --format=newc --owner=0:0 --quiet)
    } > "$directory/initrd"
    (timeout --foreground --kill-after=1 5 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -nic none \
        -machine q35 -accel kvm -cpu host -m 512M -kernel "$1/vmlinux" -initrd "$directory/initrd" \
        -append "console=ttyS0 quiet panic=-1" -serial "file:$directory/console" < /dev/null
        exit $?) > /dev/null 2>&1 || status=$?
    [ $status != 0 ] || grep -q booted "$directory/console" || status=1
    rm -rf "$directory"
    return $status
}

found=${RDMAQUOTA_ACCELERATOR:-$(cat "$cache_dir/accelerator" 2> /dev/null || :)}
case $found in
    kvm | tcg) ;;
    '')
        found=tcg
        ! boots_under_kvm "$1" || found=kvm
        echo $found > "$cache_dir/accelerator.$$"
        mv "$cache_dir/accelerator.$$" "$cache_dir/accelerator"
        ;;
    *) wrong_usage "RDMAQUOTA_ACCELERATOR is kvm or tcg, not '$found'" ;;
esac
echo "$found"
