#!/bin/bash
# run.sh [SECONDS_PER_TARGET]: builds the fuzz targets with clang, AddressSanitizer and
# UndefinedBehaviorSanitizer, runs each on its corpus and then on new inputs: 8,000 of a fixed seed, or
# as many as fit into the seconds given. A hostile process writes over a live ledger for as long (else
# 10 s). An input that breaks a target is kept and named; `TARGET INPUT` in the build directory runs it
# again. The last line is 'N passed, N failed'.
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree); new inputs are kept
# in its fuzz/corpus.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../sanitize/ninja.sh"
if [ $# = 0 ]; then
    extent="8,000 inputs" limit=(-runs=8000 -seed=1)
else
    extent="$1 s of inputs" limit=(-max_total_time="$1")
fi
hostile_seconds=${1:-10}
work=${RDMAQUOTA_BUILD:-$repo/build}/fuzz
passed=0 failed=0

for tool in clang++ ninja; do
    command -v $tool > /dev/null || { echo "SKIP: no $tool"; exit 77; }
done
mkdir -p "$work" || exit 1
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o "$work/probe" 2> /dev/null ||
    { echo "SKIP: clang++ has no libFuzzer"; exit 77; }

build() {
    ninja_begin "$address_directory" clang++ "${address_flags[@]}"
    ninja_program hostile test/fuzz/hostile.cpp "${shm_sources[@]}" "${policy_sources[@]}"
    ninja_objects "${policy_file_sources[@]}"
    ninja_flags -fsanitize=fuzzer
    ninja_program policy_text test/fuzz/policy_text.cpp "${policy_file_sources[@]}" "${policy_sources[@]}" \
        "${shm_sources[@]}"
    ninja_program settings test/fuzz/settings.cpp "${policy_sources[@]}"
    ninja_program ledger_segment test/fuzz/ledger_segment.cpp "${shm_sources[@]}" "${policy_sources[@]}"
    ninja_program node_policy test/fuzz/node_policy.cpp "${shm_sources[@]}" "${policy_sources[@]}"
    ninja_program limits_segment test/fuzz/limits_segment.cpp "${shm_sources[@]}" "${policy_sources[@]}"
    ninja_end
}

# check NAME COMMAND...
check() {
    local name=$1
    shift
    if "$@" > "$work/log" 2>&1; then
        echo "ok - $name"
        passed=$((passed + 1))
    else
        echo "not ok - $name"
        grep -a -E '^# |^expected:|ERROR|runtime error|Test unit written|^    #[0-9] .* in rdmaquota' "$work/log" |
            head -n 20 | sed -e 's/^# //' -e 's/^/    # /'
        failed=$((failed + 1))
    fi
}

fuzz() {
    mkdir -p "$work/corpus/$1"
    "$address_directory/$1" "${limit[@]}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
        -artifact_prefix="$work/$1-" "$work/corpus/$1" "$here/corpus/$1"
}

check "the fuzz targets are built" build
if [ $failed = 0 ]; then
    for target in policy_text settings node_policy limits_segment ledger_segment; do
        check "$target: corpus and $extent" fuzz $target
    done
    check "users of a ledger that is written over and cut for $hostile_seconds s" \
        "$address_directory/hostile" "$hostile_seconds"
    [ $failed != 0 ] || sed -n "s/^#/    #/p" "$work/log"
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ $failed = 0 ]
