#!/bin/bash
# run.sh: the unit tests of ledger, policy, receipts and environment, built with ThreadSanitizer and
# with AddressSanitizer and UndefinedBehaviorSanitizer. Prints ok or not ok for each test case; the
# last line is 'N passed, N failed'.
#
# RDMAQUOTA_BUILD names the build directory (default: build in the source tree).
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/ninja.sh"
work=${RDMAQUOTA_BUILD:-$repo/build}/sanitize
passed=0 failed=0

for tool in clang++ ninja python3; do
    command -v $tool > /dev/null || { echo "SKIP: no $tool"; exit 77; }
done
mkdir -p "$work" || exit 1
for sanitizer in thread address; do
    echo 'int main() { return 0; }' | clang++ -fsanitize=$sanitizer -x c++ - -o "$work/probe" 2> /dev/null ||
        { echo "SKIP: clang++ has no $sanitizer sanitizer"; exit 77; }
done

tested=("${shm_sources[@]}" "${policy_sources[@]}" "${policy_file_sources[@]}" provider/charging/receipts.cpp)
tests=(policy/{environment,limit,policy_file,subject_text} provider/receipts
    shm/{layout,ledger,ledger_process,node_policy,limits_segment,limits_writer})

# build DIRECTORY FLAGS...: what is under test with these flags; Catch2 and the tests themselves as fast as they compile
build() {
    local sources=(test/unit/main.cpp test/sanitize/threads_test.cpp) directory=$1
    shift
    for test in "${tests[@]}"; do sources+=("test/unit/${test}_test.cpp"); done
    ninja_begin "$directory" clang++ "$@"
    ninja_objects "${tested[@]}"
    ninja_flags -O0
    # One test expects its own process to have this name.
    ninja_program unit_tests "${sources[@]}" "${tested[@]}"
    ninja_end
}

# From Catch's XML: a line for each test case, and its failed expressions.
report() {
    python3 - "$1" "$2" << 'PYTHON'
import sys, xml.etree.ElementTree as xml
sanitizer, path = sys.argv[1:]
try:
    cases = xml.parse(path).getroot().iter("testsuite").__next__().findall("testcase")
except Exception as error:
    print(f"not ok - {sanitizer}: the tests ended early ({error})")
    sys.exit()
seen = {}
for case in cases:
    name = case.get("name").split("/")[0]
    seen.setdefault(name, []).extend(case.findall("failure") + case.findall("error"))
for name, failures in seen.items():
    print(f"{'not ok' if failures else 'ok'} - {sanitizer}: {name}")
    for failure in failures:
        for line in (failure.text or failure.get("message") or "").strip().splitlines():
            print(f"    # {line}")
PYTHON
}

# run NAME OPTIONS COMMAND...: one process for all cases; what a sanitizer finds fails the whole run.
# Forked children write to the same log, and so are heard as well.
run() {
    local name=$1 results=$work/$1.xml lines
    shift
    rm -f "$work/$name".log*
    env "$@" -r junit -o "$results" > "$work/$name.out" 2>&1
    lines=$(report "$name" "$results")
    printf '%s\n' "$lines"
    passed=$((passed + $(grep -c '^ok ' <<< "$lines")))
    failed=$((failed + $(grep -c '^not ok ' <<< "$lines")))
    if ! compgen -G "$work/$name.log*" > /dev/null; then
        echo "ok - $name: nothing is reported"
        passed=$((passed + 1))
    else
        echo "not ok - $name: nothing is reported"
        grep -h -A 30 -E 'WARNING|ERROR|runtime error' "$work/$name".log* | head -n 120 | sed 's/^/    # /'
        failed=$((failed + 1))
    fi
}

check_build() { # NAME DIRECTORY FLAGS...
    if build "${@:2}" > "$work/build.log" 2>&1; then return; fi
    echo "not ok - $1: the tests are built"
    tail -n 30 "$work/build.log" | sed 's/^/    # /'
    failed=$((failed + 1))
    return 1
}

# Without randomized addresses, since ThreadSanitizer of clang 14 cannot live with those of newer
# kernels. A child that forks and goes on is what some
# tests are about.
check_build thread "$work/thread" -O1 -fsanitize=thread -fno-omit-frame-pointer &&
    run thread "TSAN_OPTIONS=log_path=$work/thread.log die_after_fork=0" setarch -R "$work/thread/unit_tests"
check_build address "$address_directory" "${address_flags[@]}" &&
    run address "ASAN_OPTIONS=log_path=$work/address.log" \
        "UBSAN_OPTIONS=log_path=$work/address.log print_stacktrace=1" \
        "$address_directory/unit_tests"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ $failed = 0 ]
