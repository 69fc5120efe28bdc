# The second half of run.sh with --native: COMMAND under this machine's own kernel, with rxe0 over a dummy netdev.
# The machine stays as it was: the command, and --install, see / through an overlay in a mount namespace of their own, and
# the devices are removed again. Unlike in the guest, the command can reach the machine's processes and network.
# shellcheck shell=bash disable=SC2154,SC2317 # variables of run.sh; functions that traps call

[ -z "$icount$root" ] || wrong_usage "--native goes without --icount and --root"
[ -z "$cpus" ] || wrong_usage "--native goes without --cpus"
[ "$devices" = rxe ] || wrong_usage "--native has rxe only"
need modprobe kmod
need ip iproute2
need rdma iproute2
modprobe --dry-run --quiet rdma_rxe ||
    skip "--native: this kernel, $(uname -r), has no rdma_rxe; without --native a guest is used"
[ "$(id -u)" = 0 ] || skip "--native needs root to make rxe0"
[ ! -e /sys/class/infiniband/rxe0 ] || skip "--native: this machine already has an rxe0"

netdev=rdmaquota0
run=$(mktemp -d "${TMPDIR:-/tmp}/rdmaquota-vm.XXXXXX")
child=''

clean_up() {
    [ -z "$child" ] || kill "$child" 2>/dev/null || :
    [ -z "$child" ] || wait "$child" 2>/dev/null || :
    rdma link delete rxe0 2>/dev/null || :
    ip link delete "$netdev" 2>/dev/null || :
    rm -rf "$run" ${staged:+"$staged"}
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

make_devices() {
    modprobe --all dummy rdma_ucm rdma_rxe &&
        ip link add "$netdev" type dummy &&
        ip address add 192.168.77.1/24 dev "$netdev" &&
        ip link set "$netdev" up &&
        rdma link add rxe0 type rxe netdev "$netdev"
}

[ -z "$stage" ] || stage_build
make_devices >&2 || { say "cannot make rxe0 on this machine"; exit 125; }
command_script >"$run/command"
environment >"$run/environment"
mkdir "$run/layer" "$run/root"

# Inside the namespace. 124 would be mistaken for a time-out of `timeout`, so failures here say 125 themselves.
# shellcheck disable=SC2016 # expanded in the namespace
inside='
    mount -t tmpfs tmpfs "$run/layer" && mkdir "$run/layer/upper" "$run/layer/work" &&
    mount -t overlay -o "lowerdir=/,upperdir=$run/layer/upper,workdir=$run/layer/work" overlay "$run/root" || exit 125
    for directory in proc sys dev; do mount --rbind "/$directory" "$run/root/$directory" || exit 125; done
    mount -t tmpfs -o mode=755 tmpfs "$run/root/run" && mount -t tmpfs -o mode=1777 tmpfs "$run/root/tmp" || exit 125
    for directory in "$PWD" "$repo_dir" "$cache_dir" "$build"; do
        [ -d "$run/root$directory" ] || [ ! -d "$directory" ] ||
            { mkdir -p "$run/root$directory" && mount --bind "$directory" "$run/root$directory"; } || exit 125
    done
    mkdir "$run/root/run/rdmaquota-vm" && cp "$run/command" "$run/root/run/rdmaquota-vm/" || exit 125
    [ -z "$out" ] || { mkdir -p "$run/root/out" && mount --bind "$out" "$run/root/out"; } || exit 125
    [ -z "$install" ] || (. "$run/environment" && exec chroot "$run/root" /bin/sh "$install") >&2 || exit 125
    exec chroot "$run/root" /bin/sh /run/rdmaquota-vm/command'
export run out install repo_dir cache_dir build
timeout --foreground --kill-after=5 "$timeout" \
    unshare --mount --propagation private /bin/sh -c "$inside" </dev/null &
child=$!

status=0
wait "$child" || status=$?
child=''
if [ "$status" = 124 ]; then
    say "the command did not end within $timeout s; raise --timeout if it needs longer"
    exit 125
fi
exit "$status"
