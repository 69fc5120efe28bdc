#!/bin/bash
# run.sh [--long] [--all] [--allow-skip] [SUITE...]: installs what is missing, builds, and runs every test, or the suites
# named. --all: also those that only run when named, except `vm`.
# --long: storms for two hours, each fuzz target for half an hour, the larger models, every program of `programs`,
# twice the deaths in `kills`, and kernel_trixie and kernel_sid with the fallback by kprobes and with programs attached in
# the middle of objects' lives. The last line is 'N passed, N failed'; above it stand what each suite took, the slowest
# first, and what failed.
#
#   house        dependencies between the rooms, lengths of files; needs no build
#   unit         each module alone
#   provider     the provider beside a libibverbs that it does not know, without RDMA
#   clang        the same sources with clang's warnings
#   cli          the command line, without RDMA
#   service      the sidecar's socket, rules and metrics, without RDMA; with a real Prometheus
#   web          the sidecar's page in a real browser, without RDMA; its pictures are in web/ of the build directory
#   guest        the main job on rxe
#   early        programs that load libmlx5 before libibverbs; installing and uninstalling by Meson
#   mlx5         the real libmlx5 on a simulated mlx5_0
#   dv           what libmlx5's own calls create
#   tenants      who is in which tenant; that tenants do not harm each other; 500 of them
#   shares       what a parent may use, divided among its children; soft limits
#   upgrade      programs of the rdmaquota from before tenants, while this one is installed over it
#   objects      device attributes, QP states and ports on rxe
#   uninstalled  `rdmaquota run` from the build tree, as an ordinary user
#   trixie, sid  the QP case under rdma-core 56.1 and 65.0
#   oracle       random verbs calls, after which ledger, kernel and sidecar agree; RDMAQUOTA_ORACLE_SEED and
#                RDMAQUOTA_ORACLE_STEPS
#   oracle_kills the same while the sidecar is killed at random; RDMAQUOTA_SEED
#   programs     real programs, with each resource that they use limited
#   pyverbs      rdma-core's own pyverbs tests have the same outcomes with rdmaquota as without
#   pyverbs_mlx5 the same for those of them that need no data path, on the simulated mlx5_0
#   kernel       what the sidecar's program sees in the kernel of Debian 12; kernel_trixie and kernel_sid of Debian 13
#                and sid
#   guard        the kernel refuses what exceeds a limit, by all ways around; guard_trixie and guard_sid in the kernels of
#                Debian 13 and sid
#   guard_ways   its corners: unusual files and requests, tenants of all modes, nobody there to know a tenant
#   guard_takeover  the guard when its sidecar is killed, stopped or replaced
#   guard_degraded  where there can be no guard, all say why
#   guard_seen   what programs and administrators are told of the guard, and whom it spares
#   guard_shares shares by the kernel's figures: a forged ledger costs the others nothing
#   guard_mlx5   the guard on the simulated mlx5_0
#   guard_oracle the oracle under the guard, also while programs and the sidecar are killed; RDMAQUOTA_ORACLE_SEED and
#                RDMAQUOTA_ORACLE_STEPS
#   guard_races  the guard when things happen at once, on two CPUs; RDMAQUOTA_ROUNDS
#                All of these but guard_mlx5 also run in the other kernels, as guard_NAME_trixie and guard_NAME_sid, only when
#                named
#   guard_preempted_sid  threads that are preempted in the middle of requests, in sid's kernel; RDMAQUOTA_SECONDS;
#                guard_preempted and guard_preempted_trixie are the same elsewhere, only when named
#   sidecar      rdmaquotad sees what the kernel makes
#   metrics      what Prometheus is told, the example alerts, and the dashboard's queries, in a real Prometheus
#   kills        what killed processes held is back, also while the sidecar is killed; RDMAQUOTA_SEED
#   powers       each capability of its unit is needed by rdmaquotad, and no other
#   systemd      the units under a real systemd
#   storm        processes killed and stopped in mid-operation; a minute at random
#   model        the Promela model of the ledger, searched exhaustively, and its mutants
#   sanitize     the ledger's tests under ThreadSanitizer and AddressSanitizer
#   fuzz         random bytes for the parsers and segments, and a ledger that is written over
#   packages     Debian packages for bookworm, trixie and sid: built, installed, upgraded, removed; built for arm64; two
#                hours; only when named
#   containers   containers of podman and crun in tenants, with images of three Debian releases; only when named
#   slurm        jobs of a real Slurm under systemd, each in a tenant of its own; only when named
#   kubernetes   whom the admission policy of docs/kubernetes.md admits; needs npm; only when named
#   vm           the guest itself; only when named, for those who change test/vm
#
# `containers` and `slurm` install the packages of HEAD in a Debian 12 of their own, which has podman or Slurm; with
# RDMAQUOTA_FROM_BUILD=yes they take the build instead.
# From `guest` to `systemd` all run in the guest (test/vm); suites that want the same guest share a boot
# (test/vm/suites-in-guest.sh).
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree). A suite that cannot run says why and
# counts as failed, unless --allow-skip is given.
set -u
repo=$(cd "$(dirname "$0")/.." && pwd)
build=${RDMAQUOTA_BUILD:-$repo/build}
export RDMAQUOTA_BUILD=$build
# Meson finds ccache: so what another tree has compiled, or an earlier clone, is not compiled again.
export CCACHE_DIR=${CCACHE_DIR:-${RDMAQUOTA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdmaquota}/ccache}
export CCACHE_BASEDIR=$repo CCACHE_NOHASHDIR=yes CCACHE_SLOPPINESS=pch_defines,time_macros
# Two lines at a time, since there are two cores and a guest keeps one busy; the longest first. The suites of a line
# share a guest. The suite `service` runs beside them, since it mostly waits.
by_default=(
    "guard_takeover guard_seen guard_oracle guard_shares guard_degraded"
    "oracle_kills kills kernel"
    "guard_ways guard"
    "uninstalled guest tenants objects sidecar powers"
    shares
    "programs pyverbs"
    "oracle guard_races"
    "mlx5 dv pyverbs_mlx5 guard_mlx5"
    model
    storm
    kernel_trixie
    kernel_sid
    guard_trixie
    guard_sid
    guard_preempted_sid
    metrics
    systemd
    upgrade
    early
    sanitize
    fuzz
    clang
    trixie
    sid
    service
    web
    cli
    unit
    provider
    house
)
when_named=(packages containers slurm kubernetes guard_preempted guard_preempted_trixie)
for suite in ways takeover oracle races seen shares degraded; do when_named+=("guard_${suite}_trixie" "guard_${suite}_sid"); done
long='' allow_skip=''
while true; do
    case ${1:-} in
        --long) long=--long; export RDMAQUOTA_LONG=yes ;;
        --all) by_default+=("${when_named[@]}") ;;
        --allow-skip) allow_skip=yes ;;
        *) break ;;
    esac
    shift
done

# guest_of SUITE: the guest that it shares, as devices and number of CPUs; nothing for those that share none. Two CPUs
# cost the emulator more than twice as much, and it lets one run code while another patches it, as attaching the sidecar's
# program does, so that kernels hang or die now and then. The oracle has them, to see what goes wrong when things happen at
# once.
guest_of() {
    case $1 in
        uninstalled | guest | tenants | shares | objects | programs | pyverbs | guard | guard_ways | guard_takeover | guard_degraded | guard_seen | guard_oracle | guard_shares | sidecar | powers | oracle_kills | kills | kernel) echo rxe-1 ;;
        oracle | guard_races) echo rxe-2 ;;
        mlx5 | dv | pyverbs_mlx5 | guard_mlx5) echo both-1 ;;
        early) echo mlx5sim-1 ;;
    esac
}

# one NAME COMMAND...: a single check by exit status
one() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok - $name"
        echo "1 passed, 0 failed"
    else
        echo "not ok - $name"
        tail -n 40 <<< "$output" | sed 's/^/    # /'
        echo "0 passed, 1 failed"
    fi
}

unit_tests() {
    local output program passed=0 failed=0 p f status
    for program in unit_tests sidecar_tests; do
        [ -x "$build/test/unit/$program" ] || continue
        status=0
        output=$("$build/test/unit/$program" 2>&1) || status=$?
        read -r p f < <(sed -n -E -e 's/^All tests passed \(.* in ([0-9]+) test cases?\)$/\1 0/p' \
            -e 's/^test cases: +[0-9]+ \| +([0-9]+) passed \| +([0-9]+) failed.*$/\1 \2/p' \
            -e 's/^test cases: +[0-9]+ \| +([0-9]+) failed$/0 \1/p' <<< "$output") || p=0 f=1
        [ $status = 0 ] || [ "$f" != 0 ] || f=1
        [ "$f" = 0 ] || printf '%s\nstatus %d\n' "$output" $status
        passed=$((passed + p)) failed=$((failed + f))
    done
    printf '%d passed, %d failed\n' $passed $failed
}

gcc_build() {
    [ -f "$build/build.ninja" ] || meson setup "$build" "$repo" --werror || return
    ninja -C "$build"
}

# What is set of these is handed on to the guest.
handed_on() {
    local variable
    for variable in RDMAQUOTA_LONG RDMAQUOTA_ROUNDS RDMAQUOTA_SECONDS RDMAQUOTA_SEED RDMAQUOTA_ORACLE_SEED RDMAQUOTA_ORACLE_STEPS; do
        [ -z "${!variable-}" ] || printf '%s\n' --env "$variable=${!variable}"
    done
}

in_guest() {
    local variables
    mapfile -t variables < <(handed_on)
    "$repo/test/vm/run.sh" --timeout 1800 ${variables+"${variables[@]}"} "$@"
}

# in_kernel SUITE: guard_NAME or guard_NAME_RELEASE
in_kernel() {
    local kernel=() cpus=1 name=$1
    case $name in *_trixie | *_sid) kernel=(--kernel "${name##*_}") name=${name%_*} ;; esac
    [ "$name" != guard_races ] || cpus=2
    in_guest ${kernel+"${kernel[@]}"} --cpus $cpus --install -- bash "$repo/test/integration/${name}_test.sh" "$build"
}

in_root() {
    local root
    root=$("$repo/test/vm/roots.sh" "$1") || return 77
    printf 'version = 1\n[tenant.default."*"]\nqp = 2\n' > "$build/two_qps.toml"
    in_guest --device both --install --root "$root" --env "RDMAQUOTA_POLICY=$build/two_qps.toml" -- \
        bash "$repo/test/integration/root_test.sh" "$build" "$2"
}

# installed ROOT PACKAGE... -- OPTION... -- COMMAND...: in the guest, in that root of test/vm/roots.sh, with these packages
# installed; with RDMAQUOTA_FROM_BUILD, from the build instead
installed() {
    local root debs packages=() options=()
    root=$("$repo/test/vm/roots.sh" "$1") || return 77
    shift
    while [ "$1" != -- ]; do packages+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    if [ "${RDMAQUOTA_FROM_BUILD-}" ]; then
        in_guest --root "$root" --install "${options[@]}" -- "$@"
    else
        debs=$("$repo/test/packages/debs.sh" bookworm) || return
        in_guest --root "$root" "${options[@]}" -- "$repo/test/packages/installed.sh" "$debs" "${packages[@]}" -- "$@"
    fi
}

# The guest has no network: the images come from here.
in_containers() {
    local release
    for release in bookworm-image trixie sid; do "$repo/test/vm/roots.sh" "$release" > /dev/null || return 77; done
    installed bookworm-podman librdmaquota-provider rdmaquota rdmaquotad -- --mem 3G -- \
        "$repo/test/vm/capsule.sh" bash "$repo/test/integration/containers_test.sh" "$build"
}

in_slurm() {
    installed bookworm-slurm rdmaquota-slurm rdmaquota rdmaquotad librdmaquota-provider -- --systemd --mem 3G --timeout 2400 -- \
        bash "$repo/test/integration/slurm_test.sh" "$build"
}

# The guest has no network: Prometheus comes from here.
in_metrics() {
    local prometheus
    prometheus=$(bash "$repo/test/integration/prometheus.sh") || return
    in_guest --device both --install -- /usr/bin/python3 "$repo/test/integration/metrics_test.py" "$build" "$prometheus"
}

upgraded() {
    local older
    older=$("$repo/test/vm/older.sh" "$build") || return
    in_guest --stage -- bash "$repo/test/integration/upgrade_test.sh" "$build" "$older"
}

# run SUITE: one that shares no guest; ends with its counts
run() {
    local integration=$repo/test/integration
    case $1 in
        build) one "g++ builds without a warning" gcc_build ;;
        house) /usr/bin/python3 "$repo/test/house.py" ;;
        unit) unit_tests ;;
        clang) one "clang reads the product without a warning" /usr/bin/python3 "$repo/test/clang.py" "$build-clang" ;;
        cli) bash "$integration/cli_test.sh" "$build" ;;
        service) /usr/bin/python3 "$integration/service_test.py" "$build" ;;
        web) /usr/bin/python3 "$integration/web_test.py" "$build" ;;
        storm) "$build/test/storm/storm" --seconds "$([ $long ] && echo 7200 || echo 60)" ;;
        model) bash "$repo/test/model/run.sh" $long ;;
        sanitize) bash "$repo/test/sanitize/run.sh" ;;
        fuzz) bash "$repo/test/fuzz/run.sh" ${long:+1800} ;;
        provider) bash "$integration/provider_test.sh" "$build" ;;
        kernel_*) in_guest --kernel "${1#kernel_}" --install -- bash "$integration/kernel_test.sh" "$build" ;;
        guard_*) in_kernel "$1" ;;
        upgrade) upgraded ;;
        metrics) in_metrics ;;
        systemd) in_guest --systemd -- bash "$integration/systemd_test.sh" "$build" ;;
        trixie) in_root trixie 34 ;;
        sid) in_root sid 65 ;;
        containers) in_containers ;;
        slurm) in_slurm ;;
        packages) bash "$repo/test/packages/run.sh" ;;
        kubernetes) bash "$repo/test/kubernetes/run.sh" ;;
        vm) bash "$repo/test/vm/selftest.sh" ;;
    esac
}

# write_result NAME PASSED FAILED SECONDS [CPU_SECONDS]
write_result() { echo "$2 $3 $4 ${5:--}" > "$work/$1.result"; }

# judge SUITE STATUS SECONDS [CPU_SECONDS]: by its output and exit status; shows its output
judge() {
    local output=$work/$1 passed=0 failed=0
    if [ "$2" = 77 ]; then
        echo "skipped - $1" >> "$output"
        [ "$allow_skip" ] || failed=1
    elif ! read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output" | tail -n 1); then
        passed=0 failed=1
        echo "not ok - $1 ended without its counts, with status $2" >> "$output"
    elif [ "$2" != 0 ] && [ "$failed" = 0 ]; then
        failed=1
        echo "not ok - $1 ended with status $2" >> "$output"
    fi
    write_result "$1" "$passed" "$failed" "$3" "${4-}"
    echo "# $1 took $3 s" >> "$output"
    show "$1"
}

# show SUITE: in one piece
show() {
    {
        flock 8
        echo "# $1"
        grep -v -E '^[0-9]+ passed, [0-9]+ failed$' "$work/$1"
    } 8> "$work/show.lock"
}

run_alone() {
    local begin=$SECONDS status=0
    { time run "$1" > "$work/$1" 2>&1; } 2> "$work/$1.cpu" || status=$?
    judge "$1" $status $((SECONDS - begin)) "$(cpu_of "$1")"
}

# cpu_of NAME: seconds of CPU that `time` wrote to NAME.cpu, of user and system
TIMEFORMAT='%U %S'
cpu_of() { awk '{ printf "%.0f", $1 + $2 }' "$work/$1.cpu"; }

boot() { # GUEST SUITE...
    local guest=$1 variables
    shift
    mapfile -t variables < <(handed_on)
    "$repo/test/vm/run.sh" --stage --device "${guest%-*}" --cpus "${guest#*-}" --timeout $((1500 * $#)) ${variables+"${variables[@]}"} -- \
        bash "$repo/test/vm/suites-in-guest.sh" "$@"
}

# take_output: of one boot, from standard input; takes the suites that have ended off `left`
take_output() {
    local line suite='' status seconds booted='' begin=$SECONDS
    while IFS= read -r line; do
        case $line in
            '') ;;
            '#begin '*)
                suite=${line#* }
                : > "$work/$suite"
                [ "$booted" ] || booted=$((SECONDS - begin))
                begin=$SECONDS
                ;;
            '#end '*)
                read -r _ suite status seconds <<< "$line"
                judge "$suite" "$status" "$seconds"
                left=("${left[@]:1}") suite=''
                ;;
            '#guest '*) guest_status=${line#* } ;;
            *) echo "$line" >> "$work/${suite:-$guest}" ;;
        esac
    done
    write_result "$guest" 0 0 "${booted:-$((SECONDS - begin))}" "$(cpu_of "$guest")"
    [ -n "$suite" ] || return 0
    echo "not ok - $suite took the guest along" >> "$work/$suite"
    judge "$suite" "$guest_status" $((SECONDS - begin))
    left=("${left[@]:1}")
}

# run_together GUEST SUITE...: in one guest; those behind one that hangs, or ends the guest, run in another
run_together() {
    local kind=$1 left suite guest guest_status before
    shift
    left=("$@")
    while [ ${#left[@]} != 0 ]; do
        before=${#left[@]} guest_status=125 guest="guest-of-${left[0]}"
        : > "$work/$guest"
        take_output < <({ time boot "$kind" "${left[@]}" 2>&1; } 2> "$work/$guest.cpu"; printf '\n#guest %d\n' $?)
        [ ${#left[@]} != "$before" ] && continue
        for suite in "${left[@]}"; do
            { cat "$work/$guest"; echo "its guest did not come up"; } > "$work/$suite"
            judge "$suite" "$guest_status" 0
        done
        return
    done
}

run_line() { # SUITE...
    local kind
    kind=$(guest_of "$1")
    if [ "$kind" ]; then run_together "$kind" "$@"; else run_alone "$1"; fi
}

# shellcheck disable=SC2016 # expanded by the inner shell
next_line() { flock "$work/lock" sh -c 'head -n 1 "$1"; sed -i 1d "$1"' sh "$work/queue"; }

# worker: runs lines of the queue until it is empty
worker() {
    local -a line
    while read -r -a line < <(next_line) && [ ${#line[@]} != 0 ]; do run_line "${line[@]}"; done
}

# lines_of SUITE...: those of one guest in one line; guard_degraded, which locks its kernel down, last
lines_of() {
    local suite kind
    local -a order=()
    local -A together=()
    for suite; do [ "$suite" = guard_degraded ] || order+=("$suite"); done
    for suite; do [ "$suite" != guard_degraded ] || order+=("$suite"); done
    for suite in "${order[@]}"; do
        kind=$(guest_of "$suite")
        together[${kind:-$suite}]+="$suite "
    done
    for suite; do
        kind=$(guest_of "$suite")
        [ -z "${together[${kind:-$suite}]-}" ] || echo "${together[${kind:-$suite}]}"
        unset "together[${kind:-$suite}]"
    done
}

# check_names SUITE...: `kernels` stands for three; the result is in `suites`
check_names() {
    local suite known=" ${by_default[*]} ${when_named[*]} vm "
    suites=()
    for suite; do
        if [ "$suite" = kernels ]; then
            suites+=(kernel kernel_trixie kernel_sid)
        elif [[ $known == *" $suite "* ]]; then
            suites+=("$suite")
        else
            echo "run.sh: unknown suite $suite" >&2
            exit 2
        fi
    done
}

# sum_up: adds all results; a suite without one has not run
sum_up() {
    local suite p f seconds cpu
    for suite in "${suites[@]}"; do
        [ -e "$work/$suite.result" ] && continue
        echo "not ok - $suite did not run"
        write_result "$suite" 0 1 0
    done
    for suite in "$work"/*.result; do
        read -r p f seconds cpu < "$suite"
        passed=$((passed + p)) failed=$((failed + f))
        suite=${suite##*/}
        printf '# %5d s  %5s  %s\n' "$seconds" "$cpu" "${suite%.result}" >> "$work/seconds"
    done
    echo "#   took  of CPU  (guest-of-SUITE: until its first suite began; CPU of all of its suites)"
    sort -k 2nr "$work/seconds"
    echo "# $SECONDS s in all"
    show_failures
}

# show_failures: once more at the end, where they are found in a long output
show_failures() {
    local suite failed
    for suite in "${suites[@]}"; do
        read -r _ failed _ < "$work/$suite.result"
        [ "$failed" = 0 ] && continue
        echo "# $suite: $failed failed"
        [ ! -e "$work/$suite" ] || awk '/^not ok/ { print "#   " $0; more = 20; next } /^    #/ && more-- > 0 { print "#   " $0; next } { more = 0 }' "$work/$suite"
    done
}

if [ $# = 0 ]; then all=yes; else all=''; fi
# shellcheck disable=SC2048,SC2086 # one word for each suite
[ $# != 0 ] || set -- ${by_default[*]}
check_names "$@"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
"$repo/tools/setup.sh" || exit 1
run_alone build
if grep -q ' 0 ' "$work/build.result"; then
    if [ "$all" ]; then printf '%s\n' "${by_default[@]}"; else lines_of "${suites[@]}"; fi > "$work/queue"
    if grep -q '^service' "$work/queue"; then
        sed -i '/^service/d' "$work/queue"
        (run_alone service) &
    fi
    (worker) & (worker)
    wait
    sum_up
else
    failed=1
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ $failed = 0 ]
