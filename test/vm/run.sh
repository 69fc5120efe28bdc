#!/bin/bash
# run.sh [OPTION...] [--] COMMAND [ARGUMENT...]: runs COMMAND as root in a virtual machine with RDMA devices.
#
# The guest is QEMU (with KVM where that works, see accelerator.sh), a stock Debian kernel and this machine's own file system: read-only, with a
# tmpfs above, so that nothing the command writes outlives it, except in /out. It has no network but lo and
# dummy0 (192.168.77.1), on which soft-RoCE makes rxe0 (GID index 1 is that address). COMMAND runs in the
# caller's directory with its stdin empty; its stdout, stderr and exit status become those of run.sh. What it leaves
# running is killed. /tmp, /run and /dev/shm are empty there, but for the directories that --root names below.
#
#   --install          first install the build, $RDMAQUOTA_BUILD or <repository>/build, in the guest
#   --stage            only have it ready for install-in-guest.sh, which COMMAND may run
#   --device D         rxe (default), mlx5sim (a software mlx5_0 for the control path, see test/mlx5sim; its module is
#                      $RDMAQUOTA_MLX5SIM, else built when needed) or both
#   --root DIR         run COMMAND in that root file system (see roots.sh); the repository, the build, the cache and
#                      the current directory are seen there at their own paths
#   --kernel RELEASE   boot the kernel of Debian trixie or sid instead of this machine's release; not with mlx5sim
#   --argument WORD    give the guest's kernel this argument, too; may be repeated
#   --icount           one CPU whose time is executed instructions: repeatable, to measure with
#   --trace DIR        COMMAND can have written down which instructions are executed, see tracer.py; with --icount
#   --systemd          with systemd as process 1, which goes for basic.target and empties /tmp on the way
#   --out DIR          a directory of this machine that the guest may write to, as /out
#   --env NAME=VALUE   set a variable for COMMAND; else it has only LANG, LC_ALL, TERM, TZ and a root login's
#   --cpus N           1: with more, the emulator needs more than twice the time for the same work, so that this is for
#                      tests that want things to happen at once
#   --mem SIZE         2G
#   --timeout SEC      900
#   --native           no guest: use this machine's own kernel, where that has rdma_rxe (see native.sh)
#
# Exit status: COMMAND's own; 125 the guest failed (its console is then printed); 2 wrong usage; 77 something
# that is needed is missing (SKIP: and the reason on stderr).
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
PATH=$PATH:/usr/sbin:/sbin

install='' stage='' staged='' devices=rxe root='' icount='' systemd='' out='' trace='' cpus='' mem=2G timeout=900 native='' kernel='' variables=() kernel_words=''
build=${RDMAQUOTA_BUILD:-$repo_dir/build}

parse() {
    while [ $# -gt 0 ]; do
        case $1 in
            --device | --kernel | --argument | --root | --out | --trace | --env | --cpus | --mem | --timeout)
                [ $# -ge 2 ] || wrong_usage "$1 needs a value" ;;
        esac
        case $1 in
            --help | -h) usage; exit 0 ;;
            --install) install=$vm_dir/install-in-guest.sh stage=yes; shift ;;
            --stage) stage=yes; shift ;;
            --icount) icount=yes; shift ;;
            --systemd) systemd=yes; shift ;;
            --native) native=yes; shift ;;
            --device) devices=$2; shift 2 ;;
            --kernel) kernel=$2; shift 2 ;;
            --argument) kernel_words+=" $2"; shift 2 ;;
            --root) root=$2; shift 2 ;;
            --out) out=$2; shift 2 ;;
            --trace) trace=$2; shift 2 ;;
            --env) variables+=("$2"); shift 2 ;;
            --cpus) cpus=$2; shift 2 ;;
            --mem) mem=$2; shift 2 ;;
            --timeout) timeout=$2; shift 2 ;;
            --) shift; break ;;
            -*) wrong_usage "unknown option $1" ;;
            *) break ;;
        esac
    done
    command=("$@")
}

check() {
    local variable
    [ ${#command[@]} -gt 0 ] || wrong_usage "no command"
    case $devices in
        rxe | mlx5sim) ;;
        both) devices="rxe mlx5sim" ;;
        *) wrong_usage "--device is rxe, mlx5sim or both, not '$devices'" ;;
    esac
    case $kernel in '' | trixie | sid) ;; *) wrong_usage "--kernel is trixie or sid, not '$kernel'" ;; esac
    [ -z "$kernel" ] || [ "$devices" = rxe ] || wrong_usage "--kernel goes with --device rxe only"
    [[ ${cpus:-1} =~ ^[1-9][0-9]*$ ]] || wrong_usage "--cpus needs a number, not '$cpus'"
    [[ $timeout =~ ^[1-9][0-9]*$ ]] || wrong_usage "--timeout needs seconds, not '$timeout'"
    [[ $mem =~ ^[1-9][0-9]*[MG]$ ]] || wrong_usage "--mem needs a size such as 2G, not '$mem'"
    [ -z "$icount" ] || [ "${cpus:-1}" = 1 ] || wrong_usage "--icount counts on one CPU only"
    for variable in ${variables+"${variables[@]}"}; do
        [[ $variable =~ ^[A-Za-z_][A-Za-z_0-9]*= ]] || wrong_usage "--env needs NAME=VALUE, not '$variable'"
    done
    [ -z "$systemd" ] || [ -x /lib/systemd/systemd ] || skip "--systemd: it is not installed"
    [ -z "$root" ] || [ -d "$root/usr" ] || wrong_usage "--root: $root is no root file system"
    [ -z "$out" ] || [ -d "$out" ] || wrong_usage "--out: no directory $out"
    [ -z "$root" ] || root=$(cd "$root" && pwd -P)
    [ "$root" != / ] || root=''
    [ -z "$trace" ] || [ -n "$icount" ] || wrong_usage "--trace goes with --icount"
    [ -z "$trace" ] || [ -d "$trace" ] || wrong_usage "--trace: no directory $trace"
    [ -z "$trace" ] || trace=$(cd "$trace" && pwd -P)
    [ -z "$out" ] || out=$(cd "$out" && pwd -P)
    case $build in /*) ;; *) build=$PWD/$build ;; esac
    [ -z "$stage" ] || [ -e "$build/build.ninja" ] ||
        skip "--install: no build in $build; build it or set RDMAQUOTA_BUILD"
    mlx5sim=${RDMAQUOTA_MLX5SIM:-}
    [[ $devices != *mlx5sim* ]] || [ -z "$mlx5sim" ] || [ -e "$mlx5sim" ] || skip "--device mlx5sim: no module $mlx5sim"
}

quote() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# The environment of COMMAND, as shell lines: small on purpose, so that a test does not depend on who runs it.
environment() {
    local name variable
    for name in LANG LC_ALL TERM TZ; do
        [ -z "${!name-}" ] || variables=("$name=${!name}" ${variables+"${variables[@]}"})
    done
    for variable in HOME=/root USER=root LOGNAME=root SHELL=/bin/sh \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "RDMAQUOTA_BUILD=$build" "RDMAQUOTA_STAGE=$staged" "RDMAQUOTA_CACHE=$cache_dir" ${variables+"${variables[@]}"}; do
        echo "export ${variable%%=*}=$(quote "${variable#*=}")"
    done
}

# The command as a script for the guest's /bin/sh; `exec` also tells 126 from 127 as a shell does.
command_script() {
    local argument
    environment
    echo "cd $(quote "$PWD") || exit 125"
    printf 'exec'
    for argument in "${command[@]}"; do
        printf ' %s' "$(quote "$argument")"
    done
    echo
}

# stage_build: the build as it is to be installed, in `staged`, a directory that clean_up() removes. Meson does it here, since
# Python takes long to start in the guest.
stage_build() {
    need meson meson
    staged=$(mktemp -d "$build/stage.XXXXXX")
    chmod 755 "$staged"
    (
        flock 9
        DESTDIR="$staged" meson install -C "$build" --no-rebuild --quiet --strip >"$run/staging" 2>&1
    ) 9>"$build/stage.lock" || { cat "$run/staging" >&2; say "the build cannot be staged"; exit 125; }
}

# What the guest needs to know, as a second archive behind the cached one.
make_initrd() {
    mkdir "$run/job"
    cat >"$run/job/settings" <<END
release=$(quote "$(cat "$guest/release")")
modules=$(quote "$guest/modules")
root=$(quote "$root")
out=${out:+yes}
devices=$(quote "$devices")
install=$(quote "$install")
systemd=$systemd
END
    # Sorted: parents come before what is in them.
    printf '%s\n' "$repo_dir" "$cache_dir" "$build" "$PWD" | LC_ALL=C sort -u | while read -r directory; do
        [ ! -d "$directory" ] || echo "$directory"
    done >"$run/job/visible"
    command_script >"$run/job/command"
    environment >"$run/job/environment"
    [[ $devices != *mlx5sim* ]] || cp "$mlx5sim" "$run/job/mlx5sim.ko"
    install -m 755 "$vm_dir/guest-init" "$run/init"
    (cd "$run" && find init job | cpio --create --format=newc --owner=0:0 --quiet) >"$run/job.cpio"
    cat "$guest/base.cpio" "$run/job.cpio" >"$run/initrd"
}

parse "$@"
check
if [ -n "$native" ]; then
    # shellcheck source-path=SCRIPTDIR source=native.sh
    . "$vm_dir/native.sh"
fi
need qemu-system-x86_64 qemu-system-x86
need rdma iproute2
need cpio cpio
need setpriv util-linux

# prepared WHAT COMMAND...: its output; ends with 77 when it is not possible here
prepared() {
    local status=0
    "${@:2}" || status=$?
    [ $status = 0 ] || [ $status = 77 ] || { say "$1 could not be prepared"; status=125; }
    return $status
}
guest=$(prepared "the guest" "$vm_dir/prepare.sh" ${kernel:+"$kernel"})
accelerator=$("$vm_dir/accelerator.sh" "$guest")
[[ $devices != *mlx5sim* ]] || [ -n "$mlx5sim" ] || mlx5sim=$(prepared "mlx5sim" "$repo_dir/test/mlx5sim/build.sh")
# shellcheck source-path=SCRIPTDIR source=qemu.sh
. "$vm_dir/qemu.sh"
