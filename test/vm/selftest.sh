#!/bin/bash
# selftest.sh: proves run.sh, about three minutes. Prints `ok - name`, `not ok - name` or `skip - name`, at the end
# "N passed, N failed"; exits with 1 if any failed, 77 if the guest cannot be run here at all.
# shellcheck disable=SC2016 # much here is for the guest's shell to expand
set -eu
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

# The caller's directory is visible in the guest, so this is where what both sides read lies.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir tmp out
export TMPDIR=$work/tmp
passed=0 failed=0

guest() { "$vm_dir/run.sh" "$@" >stdout 2>stderr; }

report() { # NAME STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
        echo "ok - $1 ($((SECONDS - started)) s)"
    else
        failed=$((failed + 1))
        echo "not ok - $1"
        for stream in stdout stderr; do
            head -c 2000 "$stream" | tr -c '[:print:]\n' '?' | sed "s/^/# $stream: /"
        done
    fi
}

# check NAME COMMAND...: the test passes when the command does.
check() {
    local name=$1 result=0 started=$SECONDS
    shift
    "$@" || result=$?
    report "$name" "$result"
}

# status_is N COMMAND...: what run.sh exits with.
status_is() {
    local wanted=$1 got=0
    shift
    "$@" || got=$?
    [ "$got" = "$wanted" ] || { echo "# exit status $got, not $wanted"; return 1; }
}

no_process() { # none whose command line names our directory
    local arguments file
    for file in /proc/[0-9]*/cmdline; do
        mapfile -t -d '' arguments 2>/dev/null <"$file" || continue
        [[ ${arguments[*]} != *"$TMPDIR"* ]] || return 1
    done
}
nothing_left() { no_process && [ -z "$(ls -A "$TMPDIR")" ]; }

wait_for() { # COMMAND...: at most a minute
    for _ in $(seq 600); do
        ! "$@" || return 0
        sleep 0.1
    done
    return 1
}

passes_status() { status_is 37 guest -- sh -c 'exit 37' && [ ! -s stdout ] && [ ! -s stderr ]; }
unknown_command() { status_is 127 guest -- no-such-command; }
killed_command() { status_is 137 guest -- sh -c 'kill -9 $$'; }

passes_bytes() {
    head -c 1000000 /dev/urandom >blob1
    head -c 1000000 /dev/urandom >blob2
    printf '\0\r\n\377\004\003\0' | tee -a blob1 >>blob2
    guest -- sh -c 'cat blob1 & cat blob2 >&2; wait' && cmp stdout blob1 && cmp stderr blob2
}

# Programs that open /dev/stdout, and a writer that outlives the command by a little.
reopens_streams() {
    guest -- bash -c 'echo a >/dev/stdout; echo b >/dev/stderr; echo c > >(sleep 0.3; cat)' &&
        [ "$(cat stdout)" = $'a\nc' ] && [ "$(cat stderr)" = b ]
}

passes_arguments() {
    local arguments=("two words" "" "it's" '"$HOME" `id` \ * ?' $'line\nbreak' -- -x 'ü')
    printf '<%s>' "${arguments[@]}" >expected
    guest -- printf '<%s>' "${arguments[@]}" && cmp stdout expected
}

passes_environment() {
    SECRET=1 guest --env "A=x 'y' \$z" --env B= -- \
        sh -c 'printf "%s|%s|%s|%s" "$A" "${B-unset}" "${SECRET-unset}" "$PWD"' &&
        [ "$(cat stdout)" = "x 'y' \$z||unset|$work" ]
}

is_a_system() {
    cat >system <<'END'
set -eux
[ "$(id -u)" = 0 ]
ibv_devinfo -d rxe0 | grep -q PORT_ACTIVE
[ "$(stat -c %a /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm)" = "$(printf '666\n666')" ]
grep -q rdma /sys/fs/cgroup/cgroup.subtree_control
for type in proc sysfs devtmpfs devpts cgroup2 debugfs tracefs bpf; do
    awk -v type=$type '$3 == type { found = 1 } END { exit !found }' /proc/mounts
done
for directory in /tmp /run /dev/shm; do [ "$(stat -f -c %T "$directory")" = tmpfs ]; done
[ -e /sys/kernel/btf/ib_uverbs ] && modprobe veth
[ ! -s /dev/stdin ] && ! read -r _
# No way out: the only interfaces are lo, dummy0 and what was just made above.
[ -z "$(ls /sys/class/net | grep -v -e '^lo$' -e '^dummy0$')" ]
echo written >"$1/system"
END
    guest -- sh system "$work" && grep -q 'set -eux' system
}

pings() {
    cat >ping <<'END'
ibv_rc_pingpong -d rxe0 -g 1 -n 50 &
sleep 1
ibv_rc_pingpong -d rxe0 -g 1 -n 50 192.168.77.1 && wait $! || exit
timeout 20 rping -s -a 192.168.77.1 -C 2 &
sleep 1
timeout 20 rping -c -a 192.168.77.1 -C 2 && wait $!
END
    guest -- sh ping && grep -q '50 iters' stdout
}

writes_out() {
    guest --out out -- sh -c 'cp stdout.in /out/copy && mkdir /out/d && echo 1 >/out/d/f' &&
        cmp stdout.in out/copy && [ -f out/d/f ]
}

# Two runs of the same loop take the same time, to two ticks of /proc/uptime; without --icount they scatter.
counts_instructions() {
    cat >loop <<'END'
read -r before _ </proc/uptime
i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done
read -r after _ </proc/uptime
awk "BEGIN { print int(($after - $before) * 1000) }"
END
    local first second
    guest --icount -- sh loop && first=$(cat stdout) && guest --icount -- sh loop && second=$(cat stdout) &&
        awk "BEGIN { d = $first - $second; exit !($first > 100 && d * d <= 20 * 20) }"
}

times_out() { status_is 125 guest --timeout 7 -- sleep 1000 && grep -q 'within 7 s' stderr && nothing_left; }
panics() {
    status_is 125 guest -- sh -c 'echo c >/proc/sysrq-trigger; sleep 20' && grep -q 'sysrq' stderr && [ ! -s stdout ]
}
kills_leftovers() { status_is 5 guest -- sh -c 'sleep 1000 & setsid sleep 1000 & exit 5'; }

# With output that has come before the end, which is a test of its own.
ends_on() { # SIGNAL
    "$vm_dir/run.sh" -- sh -c 'echo started; sleep 1000' >stdout 2>stderr &
    local pid=$!
    wait_for grep -q started stdout && nothing_left && return 1
    kill "-$1" "$pid"
    wait "$pid" 2>/dev/null || :
    # SIGKILL leaves no time to remove files, but no process stays.
    [ "$1" != KILL ] || { wait_for no_process && rm -rf "${TMPDIR:?}"/*; }
    wait_for nothing_left
}

installs() { # ROOT
    # A stand-in project: what is tested is that the build is installed where the command runs.
    local reload=/run/reloaded
    mkdir -p project
    printf '#!/bin/sh\n[ "$1" = reload ] && touch %s\n' "$reload" >project/rdmaquota
    printf 'project(%s)\ninstall_data(%s, install_dir: %s, install_mode: %s)\n' \
        "'p'" "'rdmaquota'" "'bin'" "'rwxr-xr-x'" >project/meson.build
    [ -d project/build ] || meson setup project/build project >/dev/null
    RDMAQUOTA_BUILD=$work/project/build guest --install --root "$1" -- \
        sh -c "test -x /usr/local/bin/rdmaquota && test -e $reload" &&
        [ ! -s stdout ]
}

guest -- true || [ $? != 77 ] || { cat stderr >&2; exit 77; }
check "exit status" passes_status
check "exit status of an unknown command" unknown_command
check "exit status of a killed command" killed_command
check "stdout and stderr byte for byte" passes_bytes
check "stdout and stderr opened again" reopens_streams
check "arguments" passes_arguments
check "environment and directory" passes_environment
check "system, devices and isolation" is_a_system
check "ibv_rc_pingpong and rping" pings
check "--device both" guest --device both -- sh -c 'ibv_devinfo -d rxe0 && ibv_devinfo -d mlx5_0'
cp blob1 stdout.in
check "--out" writes_out
check "--icount" counts_instructions
check "--timeout" times_out
check "kernel panic" panics
check "background processes" kills_leftovers
check "streaming, and no process left after SIGTERM" ends_on TERM
check "no process left after SIGKILL" ends_on KILL
check "usage: no command" status_is 2 guest --
check "usage: unknown option" status_is 2 guest --frobnicate -- true
check "usage: --device" status_is 2 guest --device mlx4 -- true
RDMAQUOTA_MLX5SIM=/nonexistent check "no mlx5sim module" status_is 77 guest --device mlx5sim -- true
RDMAQUOTA_BUILD=/nonexistent check "no build" status_is 77 guest --install -- true
if command -v meson >/dev/null; then check "--install" installs /; fi
for release in trixie sid; do
    if root=$("$vm_dir/roots.sh" "$release" 2>stderr); then
        check "--root $release" guest --root "$root" -- \
            sh -c ". /etc/os-release; ibv_devinfo -d rxe0 && grep -q -e $release /etc/os-release && test -s blob1"
        if command -v meson >/dev/null; then check "--install --root $release" installs "$root"; fi
    else
        echo "skip - --root $release # $(tail -n 1 stderr)"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
