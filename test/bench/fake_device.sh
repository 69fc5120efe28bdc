#!/bin/bash
# fake_device.sh DIRECTORY COMMAND [ARGUMENT...]: runs COMMAND with a device fake0 for libfake-rdmav34.so, in a
# mount namespace of its own: a sysfs tree in DIRECTORY and a /dev that has only null devices, one of them as
# /dev/infiniband/uverbs0. Nothing of the machine changes. Needs root.
set -eu
directory=$1
shift
sysfs=$directory/sysfs dev=$directory/dev
if [ ! -d "$sysfs" ]; then
    mkdir -p "$sysfs/class/infiniband_verbs/uverbs0" "$sysfs/class/infiniband/fake0" "$dev"
    echo 6 >"$sysfs/class/infiniband_verbs/abi_version"
    echo fake0 >"$sysfs/class/infiniband_verbs/uverbs0/ibdev"
    echo 1:3 >"$sysfs/class/infiniband_verbs/uverbs0/dev"
    echo 1 >"$sysfs/class/infiniband_verbs/uverbs0/abi_version"
    echo '1: CA' >"$sysfs/class/infiniband/fake0/node_type"
fi
export SYSFS_PATH=$sysfs
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --mount --propagation private sh -c '
    dev=$1
    shift
    mount -t tmpfs -o mode=755 tmpfs "$dev"
    mkdir "$dev/infiniband" "$dev/shm"
    mount --bind /dev/shm "$dev/shm"
    mknod -m 666 "$dev/null" c 1 3
    mknod -m 666 "$dev/zero" c 1 5
    mknod -m 666 "$dev/urandom" c 1 9
    mknod -m 666 "$dev/infiniband/uverbs0" c 1 3
    mount --rbind "$dev" /dev
    exec "$@"' fake_device "$dev" "$@"
