#!/bin/bash
# prepared.sh build|unit|clang|metrics|root|containers|slurm BUILD [...]: runs a suite of test/run.sh that needs something
# prepared first (a root file system, packages, an older installation), or whose output is not yet counts. Called by
# test/runner. Ends with the line 'N passed, N failed'; exit status 77 where the suite cannot run here.
set -u
repo=$(cd "$(dirname "$0")/../.." && pwd)
what=$1 build=$2
shift 2
integration=$repo/test/integration

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
        return 1
    fi
}

gcc_build() {
    [ -f "$build/build.ninja" ] || meson setup "$build" "$repo" --werror || return
    ninja -C "$build"
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
        [ "$f" = 0 ] || { echo "not ok - $program"; sed 's/^/    # /' <<< "$output"; echo "    # status $status"; }
        passed=$((passed + p)) failed=$((failed + f))
    done
    printf '%d passed, %d failed\n' $passed $failed
    [ $failed = 0 ]
}

in_guest() {
    local name variables=()
    for name in RDMAQUOTA_TIER RDMAQUOTA_LONG RDMAQUOTA_SEED RDMAQUOTA_PATIENCE; do
        [ -z "${!name-}" ] || variables+=(--env "$name=${!name}")
    done
    "$repo/test/vm/run.sh" --timeout 1800 ${variables+"${variables[@]}"} "$@"
}

in_root() { # RELEASE PABI
    local root
    root=$("$repo/test/vm/roots.sh" "$1") || return 77
    local libraries
    printf 'version = 1\n[tenant.default."*"]\nqp = 2\n' > "$build/two_qps.toml"
    libraries=$(dirname "$(realpath "$(ldconfig -p | awk '$1 == "libibverbs.so.1" { print $NF; exit }')")")
    mkdir -p "$build/other_verbs/libibverbs"
    cp -L "$libraries/libibverbs.so.1" "$build/other_verbs"
    cp -L "$libraries"/libibverbs/librxe-rdmav*.so "$build/other_verbs/libibverbs"
    in_guest --device both --install --root "$root" --env "RDMAQUOTA_POLICY=$build/two_qps.toml" -- \
        bash "$integration/root_test.sh" "$build" "$2"
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

# The guest has no network: the images come from this machine.
in_containers() {
    local release
    for release in bookworm-image trixie sid; do "$repo/test/vm/roots.sh" "$release" > /dev/null || return 77; done
    installed bookworm-podman librdmaquota-provider rdmaquota rdmaquotad -- --mem 3G -- \
        "$repo/test/vm/capsule.sh" bash "$integration/containers_test.sh" "$build"
}

in_slurm() {
    installed bookworm-slurm rdmaquota-slurm rdmaquota rdmaquotad librdmaquota-provider -- --systemd --mem 3G --timeout 2400 -- \
        bash "$integration/slurm_test.sh" "$build"
}

# The guest has no network: Prometheus comes from this machine.
in_metrics() {
    local prometheus
    prometheus=$(bash "$integration/prometheus.sh") || return
    in_guest --device both --install -- /usr/bin/python3 "$integration/metrics_test.py" "$build" "$prometheus"
}

case $what in
    build) one "g++ builds without a warning" gcc_build ;;
    clang) one "clang reads the product without a warning" /usr/bin/python3 "$repo/test/clang.py" "$build" ;;
    unit) unit_tests ;;
    metrics) in_metrics ;;
    root) in_root "$@" ;;
    containers) in_containers ;;
    slurm) in_slurm ;;
esac
