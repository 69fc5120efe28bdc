#!/bin/bash
# run.sh [--json] [--quick | --long] [ROW...]: builds what the benchmarks need, runs them, and prints one table: each figure
# beside its rivals from the same run, what it is to reach, and whether it did. It measures and decides nothing: the
# exit status is 0 unless a row could not be measured, which that row explains.
#
#   charge     charge and release, one thread: nanoseconds, and instructions where valgrind is installed
#   pairs      creating and destroying an object on a fake device, in instructions, with limits for all that it costs;
#              and function by function
#   processes  1 to 64 processes charging one tenant: per second and per second of CPU, and the slowest one's share;
#              the instructions of a pair, function by function (and in the guest, making PDs on rxe)
#   receipts   what a process keeps for each live object: nanoseconds and bytes
#   objects    creating and destroying objects on rxe and a simulated mlx5, in instructions (in the guest); means of the
#              middle half and plain ones
#   open       listing, opening and closing a device (on a fake one, and in the guest, also by a tenant's user)
#   death      the charge after the kill -9 of a holder of 1,000 QPs (and in the guest)
#   start      300 processes that open, charge and end (fake device)
#   denial     a denial among 1, 100 and 4,000 live owners: a process's first, later ones, and the charge after a death
#   guard      creating and destroying objects under the guard, in instructions (in the guest); function by function
#   shares     a pass that divides what 1,000 tenants may use: CPU time
#   memory     what a process takes more with us (fake device)
#   isolation  only when it is named, a quarter of an hour: what a victim's calls take beside attackers that create and destroy, on rxe
#              and a simulated mlx5, without us, with counts, with rates, and with rates and the guard (docs/isolation.md)
#
# RDMAQUOTA_PERCENT=5: what part of a device's own pace the attackers' rates are in `isolation`, in percent (default 0.5)
# RDMAQUOTA_KERNEL=trixie or sid: the row `guard` in that release's kernel
#
#   --json     one JSON object instead of the table
#   --quick    fewer repetitions, under two minutes; for `isolation`, three attackers and not twelve
#   --long     for `isolation`, 36 attackers: also 64 processes, and MRs of 1 GiB
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree; made with --buildtype=release when it
# is not there). A fake device needs root; the guest needs what test/vm/run.sh needs.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
repo=$(cd "$here/../.." && pwd -P)
build=${RDMAQUOTA_BUILD:-$repo/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
programs=$build/test/bench
all_rows=(charge pairs processes receipts objects open death start denial guard shares memory)
json='' quick='' long='' rows=()

while [ $# -gt 0 ]; do
    case $1 in
        --json) json=--json ;;
        --quick) quick=yes ;;
        --long) long=yes ;;
        --help | -h) sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; exit 0 ;;
        *)
            if [[ " ${all_rows[*]} isolation " != *" $1 "* ]]; then
                echo "run.sh: unknown row '$1'; rows: ${all_rows[*]} isolation" >&2
                exit 2
            fi
            rows+=("$1") ;;
    esac
    shift
done
[ ${#rows[@]} -gt 0 ] || rows=("${all_rows[@]}")

# A tmpfs, as a node's /run is.
scratch=$(mktemp -d "${RDMAQUOTA_BENCH_DIR:-/dev/shm}/rdmaquota-bench.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export RDMAQUOTA_BENCH_DIR=$scratch XDG_RUNTIME_DIR=$scratch
figures=$scratch/figures reasons=$scratch/reasons
: >"$figures"
: >"$reasons"

wanted() { local row; for row in "$@"; do [[ " ${rows[*]} " == *" $row "* ]] && return 0; done; return 1; }
say() { echo "run.sh: $*" >&2; }
# cannot WHAT REASON: rows that need WHAT say so.
cannot() { say "$1 cannot be measured: $2"; echo "$1 $2" >>"$reasons"; }
choose() { if [ -n "$quick" ]; then echo "$2"; else echo "$1"; fi; }

# measure WHAT COMMAND...: adds its figures, or why there are none
measure() {
    local what=$1 output
    shift
    say "$what"
    if output=$("$@" 2>"$scratch/errors"); then
        printf '%s\n' "$output" >>"$figures"
    else
        cannot "$what" "$(grep -v '^$' "$scratch/errors" | tail -n 1)"
    fi
}

build_all() {
    [ -f "$build/build.ninja" ] || meson setup "$build" "$repo" --buildtype=release || return 1
    ninja -C "$build" all bench
}

# The instructions of one pair: the difference between many and twice as many.
count_instructions() {
    local what few many
    for what in one qp; do
        few=$("$here/instructions.sh" "$programs/bench_charge" --$what 2000) || return
        many=$("$here/instructions.sh" "$programs/bench_charge" --$what 4000) || return
        echo "charge_instructions.$what $(((many - few) / 2000))"
    done
}

# What a pair of a QP's worth consists of.
count_functions() {
    local side
    for side in ours mutex; do
        python3 -B "$here/functions.py" "processes_functions.$side" "" 2000 "$programs/bench_charge" --qp {} $side || return
    done
}

on_fake_device() {
    [ "$(id -u)" = 0 ] || { echo "a fake device needs root" >&2; return 1; }
    [ -e "$programs/libfake-rdmav34.so" ] || { echo "libibverbs here has not private ABI 34" >&2; return 1; }
    if [ -e /etc/libibverbs.d/rdmaquota.driver ]; then
        echo "rdmaquota is installed here: nothing is without it" >&2
        return 1
    fi
    "$here/fake_device.sh" "$scratch/fake" env RDMAV_DRIVERS="$programs/libfake" \
        "$build/tools/rdmaquota/rdmaquota" run "$@"
}
device_figures() {
    on_fake_device --limit qp=1000000 --tenant-limit qp=1000000 -- \
        "$here/device.sh" "$build" "$(choose 41 15)" "$(choose 7 2)"
}

in_guest() { # DEVICE_OF_THE_GUEST SCRIPT AMOUNT REPEATS DEVICE NAME [OPTIONS [ARGUMENT...]]
    # shellcheck disable=SC2086 # options or none
    "$repo/test/vm/run.sh" --device "$1" ${7-} --install --env "RDMAQUOTA_POLICY=$here/far_limits.toml" -- \
        sh "$here/$2" "$build" "$3" "$4" "$5" "$6" "${@:8}"
}

guards_kernel=${RDMAQUOTA_KERNEL:+--kernel $RDMAQUOTA_KERNEL}

# What the guard consists of, by every instruction of some pairs.
trace_guard() {
    local traces=$scratch/traces
    mkdir "$traces" || return
    in_guest rxe guest_guard.sh 32 1 rxe0 guard "--icount $guards_kernel --trace $traces --out $traces" traced >&2 || return
    python3 -B "$here/traced.py" guard_traced "$traces" 32
}

# What of it the policy or the sidecar refuses is reported as such, beside what was measured.
isolation() { # DEVICE_OF_THE_GUEST DEVICE NAME
    local size=${long:+long} output
    size=${size:-$(choose default quick)}
    output=$("$repo/test/vm/run.sh" --device "$1" --icount --mem 4G --timeout 14400 --install \
        --env "RDMAQUOTA_POLICY=$here/far_limits.toml" -- \
        bash "$here/guest_isolation.sh" "$build" "$size" "${RDMAQUOTA_PERCENT:-0.5}" "$2" "$3") || return
    sed -n 's/^cannot //p' <<<"$output" >>"$reasons"
    grep -v '^cannot ' <<<"$output"
}

if ! build_all >"$scratch/build" 2>&1; then
    tail -n 20 "$scratch/build" >&2
    say "the build failed"
    exit 1
fi
wanted charge && measure charge "$programs/bench_charge" --runs "$(choose 31 11)" --pairs "$(choose 100000 30000)"
wanted charge && command -v valgrind >/dev/null && measure instructions count_instructions
wanted processes && measure processes "$programs/bench_processes" \
    --runs "$(choose 5 1)" --milliseconds "$(choose 2000 1000)"
wanted processes && measure processes_functions count_functions
wanted denial && measure denial "$programs/bench_denial" --runs "$(choose 101 31)"
wanted shares && measure shares "$programs/bench_shares" --runs "$(choose 31 11)"
wanted death && measure death "$programs/bench_death" --runs "$(choose 51 21)"
wanted open start memory && measure device device_figures
wanted pairs && measure pairs on_fake_device -- "$here/pairs.sh" "$build"
wanted receipts && measure receipts "$programs/bench_receipts" --runs "$(choose 31 11)"
wanted processes && measure many in_guest rxe guest_processes.sh "$(choose 3000 1000)" "$(choose 5 1)" rxe0 many "--cpus 2"
wanted objects open death && measure guest in_guest rxe guest.sh "$(choose 400 200)" "$(choose 16 3)" rxe0 guest --icount
wanted guard && measure guard in_guest rxe guest_guard.sh "$(choose 400 200)" "$(choose 12 3)" rxe0 guard "--icount $guards_kernel"
wanted guard && measure guard_traced trace_guard
wanted open && measure tenants in_guest rxe guest_tenants.sh 4 "$(choose 4 2)" rxe0 tenants --icount
wanted objects open && measure mlx5 in_guest mlx5sim guest.sh "$(choose 400 200)" "$(choose 16 3)" mlx5_0 mlx5 --icount
wanted isolation && measure isolation_rxe isolation rxe rxe0 isolation_rxe
wanted isolation && measure isolation_mlx5 isolation mlx5sim mlx5_0 isolation_mlx5

build_type=$(meson introspect --buildoptions "$build" 2>/dev/null |
    python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "buildtype"))')
python3 -B "$here/report.py" $json --build "$build_type" --figures "$figures" --reasons "$reasons" "${rows[@]}"
