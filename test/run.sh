#!/bin/bash
# run.sh [--long] [SUITE...]: installs what is missing, builds, and runs every test, or the suites
# named. --long: storms for two hours, each fuzz target for half an hour, and the larger models.
# The last line is 'N passed, N failed'.
#
#   unit         each module alone
#   provider     the provider beside a libibverbs that it does not know, without RDMA
#   clang        the same sources with clang's warnings
#   cli          the command line, without RDMA
#   service      the sidecar's socket, rules and metrics, without RDMA; with a real Prometheus
#   guest        the main job on rxe, in the guest, after an installation
#   early        programs that load libmlx5 before libibverbs, in the guest, after an installation
#   mlx5         the real libmlx5 on a simulated mlx5_0, in the guest, after an installation
#   dv           what libmlx5's own calls create, in the guest, after an installation
#   objects      device attributes, QP states and ports on rxe, in the guest
#   uninstalled  `rdmaquota run` from the build tree, as an ordinary user
#   trixie, sid  the QP case under rdma-core 56.1 and 65.0
#   oracle       random verbs calls, after which ledger, kernel and sidecar agree; RDMAQUOTA_ORACLE_SEED and
#                RDMAQUOTA_ORACLE_STEPS
#   oracle_kills the same while the sidecar is killed at random; RDMAQUOTA_SEED
#   programs     real programs, with each resource that they use limited
#   pyverbs      rdma-core's own pyverbs tests have the same outcomes with rdmaquota as without
#   pyverbs_mlx5 the same for those of them that need no data path, on the simulated mlx5_0
#   kernels      what the sidecar's program sees in the kernels of Debian 12, 13 and sid
#   sidecar      rdmaquotad sees what the kernel makes, in the guest
#   kills        what killed processes held is back, also while the sidecar is killed; RDMAQUOTA_SEED
#   powers       each capability of its unit is needed by rdmaquotad, and no other
#   systemd      its unit, and the policy's, under a real systemd
#   storm        processes killed and stopped in mid-operation; two minutes at random
#   model        the Promela model of the ledger, searched exhaustively, and its mutants
#   sanitize     the ledger's tests under ThreadSanitizer and AddressSanitizer
#   fuzz         random bytes for the parsers and segments, and a ledger that is written over
#   vm           the guest itself; only when named, for who changes test/vm
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree). A suite that cannot
# run says why, and counts as failed when CI=true.
set -u
repo=$(cd "$(dirname "$0")/.." && pwd)
build=${RDMAQUOTA_BUILD:-$repo/build}
export RDMAQUOTA_BUILD=$build
# Two at a time, since there are two cores and a guest keeps one busy; the longest first.
by_default=(guest model programs pyverbs fuzz mlx5 early dv kills sidecar kernels sanitize pyverbs_mlx5 storm objects
    clang oracle oracle_kills powers systemd trixie sid uninstalled service cli unit provider)
long=''
if [ "${1:-}" = --long ]; then
    long=--long
    shift
fi
suites=("$@")
passed=0 failed=0

# count TEXT: adds the counts of a suite's last line
count() {
    local line
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' <<< "$1" | tail -n 1)
    if [ -z "$line" ]; then
        echo "not ok - $suite ended without its counts"
        failed=$((failed + 1))
        return
    fi
    read -r p _ f _ <<< "$line"
    passed=$((passed + p)) failed=$((failed + f))
}

# tap COMMAND...: a suite that closes with its counts
tap() {
    local output status
    output=$("$@" 2> >(sed 's/^/    /' >&2))
    status=$?
    if [ $status = 77 ]; then
        echo "skipped - $suite"
        [ "${CI:-}" != true ] || failed=$((failed + 1))
        return
    fi
    grep -v -E '^[0-9]+ passed, [0-9]+ failed$' <<< "$output"
    count "$output"
}

# one NAME COMMAND...: a single check by exit status
one() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "ok - $name"
        passed=$((passed + 1))
    else
        echo "not ok - $name"
        tail -n 40 <<< "$output" | sed 's/^/    # /'
        failed=$((failed + 1))
    fi
}

unit_tests() {
    local output
    output=$("$build/test/unit/$1" 2>&1)
    sed -n -E -e 's/^All tests passed \(.* in ([0-9]+) test cases?\)$/\1 passed, 0 failed/p' \
        -e 's/^test cases: +[0-9]+ \| +([0-9]+) passed \| +([0-9]+) failed.*$/\1 passed, \2 failed/p' \
        -e 's/^test cases: +[0-9]+ \| +([0-9]+) failed$/0 passed, \1 failed/p' <<< "$output"
    grep -q '^All tests passed' <<< "$output" || printf '%s\n' "$output" >&2
}

clang_build() {
    CC=clang CXX=clang++ meson setup "$build-clang" "$repo" -Dtests=false -Doptimization=0 -Ddebug=false --werror \
        > /dev/null || return 1
    ninja -C "$build-clang"
}

configure() { [ -f "$build/build.ninja" ] || meson setup "$build" "$repo" --werror; }
build() { ninja -C "$build"; }

in_guest() { "$repo/test/vm/run.sh" --timeout 900 "$@"; }

# The counts of all three in one last line.
on_kernels() {
    local release output p f passed=0 failed=0
    for release in '' trixie sid; do
        output=$(in_guest --install ${release:+--kernel "$release"} -- \
            bash "$repo/test/integration/kernel_test.sh" "$build")
        case $? in 77) return 77 ;; esac
        grep -v -E '^[0-9]+ passed, [0-9]+ failed$' <<< "$output" | sed "s/^\(not ok\|ok\) - /&${release:-bookworm}: /"
        read -r p _ f _ < <(tail -n 1 <<< "$output")
        if ! [[ $output =~ [0-9]+\ passed,\ [0-9]+\ failed$ ]]; then
            echo "not ok - ${release:-bookworm} ended without its counts"
            p=0 f=1
        fi
        passed=$((passed + p)) failed=$((failed + f))
    done
    printf '%d passed, %d failed\n' $passed $failed
}

in_root() {
    local root
    root=$("$repo/test/vm/roots.sh" "$1") || return 77
    printf 'version = 1\n[tenant.default."*"]\nqp = 2\n' > "$build/two_qps.toml"
    in_guest --device both --install --root "$root" --env "RDMAQUOTA_POLICY=$build/two_qps.toml" -- \
        bash "$repo/test/integration/root_test.sh" "$build" "$2"
}

run() {
    case $1 in
        unit)
            tap unit_tests unit_tests
            [ ! -x "$build/test/unit/sidecar_tests" ] || tap unit_tests sidecar_tests
            ;;
        clang) one "clang builds without a warning" clang_build ;;
        cli) tap bash "$repo/test/integration/cli_test.sh" "$build" ;;
        service) tap /usr/bin/python3 "$repo/test/integration/service_test.py" "$build" ;;
        storm) tap "$build/test/storm/storm" --seconds "$([ $long ] && echo 7200 || echo 120)" ;;
        model) tap bash "$repo/test/model/run.sh" $long ;;
        sanitize) tap bash "$repo/test/sanitize/run.sh" ;;
        fuzz) tap bash "$repo/test/fuzz/run.sh" ${long:+1800} ;;
        provider) tap bash "$repo/test/integration/provider_test.sh" "$build" ;;
        guest) tap in_guest --install -- bash "$repo/test/integration/guest_test.sh" "$build" ;;
        mlx5) tap in_guest --device both --install -- bash "$repo/test/integration/mlx5_test.sh" "$build" ;;
        early) tap in_guest --device mlx5sim --install -- bash "$repo/test/integration/early_test.sh" "$build" ;;
        dv) tap in_guest --device mlx5sim --install -- bash "$repo/test/integration/dv_test.sh" "$build" ;;
        objects) tap in_guest --install -- bash "$repo/test/integration/objects_test.sh" "$build" ;;
        uninstalled) tap in_guest -- bash "$repo/test/integration/uninstalled_test.sh" "$build" ;;
        oracle) tap in_guest --install -- bash "$repo/test/oracle/run.sh" "$build" \
            --seed "${RDMAQUOTA_ORACLE_SEED:-$RANDOM}" --steps "${RDMAQUOTA_ORACLE_STEPS:-3000}" \
            single limits threads resizers processes unplug ;;
        oracle_kills) tap in_guest --install -- \
            bash "$repo/test/oracle/run.sh" --kill-sidecar "${RDMAQUOTA_SEED:-$RANDOM}" "$build" \
            --seed "${RDMAQUOTA_ORACLE_SEED:-$RANDOM}" --steps "${RDMAQUOTA_ORACLE_STEPS:-3000}" --new-sidecar 5 \
            threads processes ;;
        kernels) tap on_kernels ;;
        sidecar) tap in_guest --install -- bash "$repo/test/integration/sidecar_test.sh" "$build" ;;
        kills) tap in_guest --install --env "RDMAQUOTA_SEED=${RDMAQUOTA_SEED:-$RANDOM}" -- \
            bash "$repo/test/integration/sidecar_kills_test.sh" "$build" ;;
        powers) tap in_guest --install -- bash "$repo/test/integration/sidecar_powers_test.sh" "$build" ;;
        systemd) tap in_guest --systemd --install -- bash "$repo/test/integration/systemd_test.sh" "$build" ;;
        programs) tap in_guest --install -- /usr/bin/python3 "$repo/test/integration/programs_test.py" ;;
        pyverbs) tap in_guest --install -- bash "$repo/test/integration/pyverbs_test.sh" "$build" rxe0 ;;
        pyverbs_mlx5) tap in_guest --device mlx5sim --install -- \
            bash "$repo/test/integration/pyverbs_test.sh" "$build" mlx5_0 ;;
        trixie) tap in_root trixie 34 ;;
        sid) tap in_root sid 65 ;;
        vm) tap bash "$repo/test/vm/selftest.sh" ;;
        *) echo "run.sh: unknown suite $1" >&2; exit 2 ;;
    esac
}

# shellcheck disable=SC2016 # expanded by the inner shell
next_suite() { flock "$work/lock" sh -c 'head -n 1 "$1"; sed -i 1d "$1"' sh "$work/queue"; }

# worker: runs suites of the queue until it is empty; what each says goes to a file of its name
worker() {
    local suite
    while suite=$(next_suite) && [ -n "$suite" ]; do
        passed=0 failed=0 SECONDS=0
        {
            run "$suite"
            echo "# $suite took $SECONDS s"
            echo "counts: $passed $failed"
        } > "$work/$suite" 2>&1
    done
}

# add_suite NAME: shows what a suite said and adds its counts
add_suite() {
    local p f
    echo "# $1"
    grep -v '^counts: ' "$work/$1"
    read -r _ p f < <(grep '^counts: ' "$work/$1" || echo "counts: 0 1")
    passed=$((passed + p)) failed=$((failed + f))
}

all_suites() {
    local work
    work=$(mktemp -d)
    printf '%s\n' "${by_default[@]}" > "$work/queue"
    (worker) & (worker)
    wait
    for suite in "${by_default[@]}"; do add_suite "$suite"; done
    rm -r "$work"
}

"$repo/tools/setup.sh" || exit 1
one "the build is configured" configure
one "g++ builds without a warning" build
if [ $failed = 0 ] && [ ${#suites[@]} = 0 ]; then
    all_suites
elif [ $failed = 0 ]; then
    for suite in "${suites[@]}"; do run "$suite"; done
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ $failed = 0 ]
