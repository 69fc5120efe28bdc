# Shell functions for what is measured in the guest: its variants are bare (rdmaquota is installed but not registered),
# ours, rdmacg (bare, and limited by the kernel's rdma cgroup), early (ours, in a program that has loaded libmlx5
# before libibverbs reads its configuration), and watched (bare, under the sidecar's eyes). Sourced with $name and
# $device set.
# shellcheck shell=sh disable=SC2154

registration=/etc/libibverbs.d/rdmaquota.driver
group=/sys/fs/cgroup/rdmaquota-bench
# The guest's root is a network file system, where opening a small file takes five times the instructions that it takes in
# other file systems. So what a process reads at the start lies in memory.
in_memory() { # DIRECTORY
    [ "$(stat --file-system --format=%T "$1")" != tmpfs ] || return 0
    copy=/run/bench$1
    mkdir -p "${copy%/*}"
    cp -a "$1" "$copy"
    mount --bind "$copy" "$1"
}
in_memory ${registration%/*}
in_memory "$(dirname "$(find /usr/lib -name librdmaquota.so)")"
mkdir -p $group
echo "$device hca_handle=100000 hca_object=1000000" >$group/rdma.max

switch() {
    case $1 in
        ours | early) [ -e $registration ] || mv /run/rdmaquota.driver $registration ;;
        *) [ ! -e $registration ] || mv $registration /run/rdmaquota.driver ;;
    esac
}

# measure VARIANT COMMAND...: prints its figures as NAME.VARIANT.FIGURE
measure() {
    variant=$1
    shift
    switch "$variant"
    # shellcheck disable=SC2016 # expanded by the inner shell
    case $variant in
        rdmacg) sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group "$@" ;;
        early) LD_PRELOAD=libmlx5.so.1 "$@" ;;
        *) "$@" ;;
    esac >/run/bench.out
    sed "s/^/$name.$variant./" /run/bench.out
}
