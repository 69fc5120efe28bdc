#!/bin/bash
# capsule.sh COMMAND [ARGUMENT...]: runs COMMAND, as root in the guest, on a file system of its own: an overlay over the
# guest's, with empty /run, /tmp and /dev/shm, and the installed policy in force, without tenants that were added to it. What
# COMMAND changes in files or mounts is gone when it has ended. /proc, /sys, /dev, processes and the network are the guest's.
# Exit status: COMMAND's own; 125 when its file system could not be made.
set -eu
layer=/run/rdmaquota-vm/capsule
root=$layer/root
module=/run/rdmaquota-vm/mlx5sim.ko  # of the simulated device, for a suite that removes it

# What is mounted below /proc, /sys and /dev comes along with these. Directories below /tmp and /run are the ones that
# the guest shares with the host; `mountinfo` lists them after what they lie in.
mount_everything() {
    local point
    for point; do
        case $point in
            / | "$layer"* | /proc/* | /sys/* | /dev/*) ;;
            /proc | /sys | /dev) mount --rbind "$point" "$root$point" ;;
            /run | /tmp) mount -t tmpfs -o mode=1777 tmpfs "$root$point" ;;
            *)
                mkdir -p "$root$point"
                mount --bind "$point" "$root$point"
                ;;
        esac
    done
    chmod 755 "$root/run"
    mkdir "$root/run/lock"
    if [ -e "$module" ]; then
        mkdir "$root${module%/*}"
        cp "$module" "$root$module"
    fi
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
}

make_root() {
    local points
    mapfile -t points < <(while read -r _ _ _ _ point _; do printf '%b\n' "$point"; done < /proc/self/mountinfo)
    mkdir -p "$layer"
    mount -t tmpfs -o mode=755 tmpfs "$layer"
    mkdir "$layer/upper" "$layer/work" "$root"
    mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$root"
    mount_everything "${points[@]}"
}

if [ "$1" != --inside ]; then
    exec unshare --mount --propagation slave "$0" --inside "$@"
fi
shift
directory=$PWD
make_root || exit 125
cd "$root"
# Not chroot: programs in there may make user namespaces.
pivot_root . .
umount -l .
cd "$directory" || exit 125
if command -v rdmaquota > /dev/null; then
    rdmaquota reload > /dev/null || exit 125
    # What an earlier one has added stays in the quota directory, which is the guest's.
    rdmaquota tenant list | awk '$4 == "transient" { print $1 }' | xargs -r -n 1 rdmaquota tenant remove > /dev/null
fi
exec "$@"
