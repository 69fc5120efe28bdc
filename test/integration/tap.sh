# Shell helpers for tests: each check prints "ok - NAME", or "not ok - NAME" and what it saw.
# shellcheck shell=bash

# shellcheck source=test/processes.sh
. "$(dirname "${BASH_SOURCE[0]}")/../processes.sh"
# shellcheck source=test/waiting.sh
. "$(dirname "${BASH_SOURCE[0]}")/../waiting.sh"

passed=0 failed=0

ok() {
    printf 'ok - %s\n' "$1"
    passed=$((passed + 1))
}

not_ok() {
    printf 'not ok - %s\n' "$1"
    shift
    printf '%s\n' "$@" | sed 's/^/    # /'
    failed=$((failed + 1))
}

# is NAME SEEN WANTED
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "seen:   $2" "wanted: $3"; fi; }

# has NAME TEXT PART: PART occurs in TEXT as it stands
has() { if [[ $2 == *"$3"* ]]; then ok "$1"; else not_ok "$1" "seen:    $2" "missing: $3"; fi; }

# lacks NAME TEXT PART
lacks() { if [[ $2 != *"$3"* ]]; then ok "$1"; else not_ok "$1" "seen: $2" "unwanted: $3"; fi; }

# succeeds NAME COMMAND...
succeeds() {
    local name=$1 output status=0
    shift
    output=$("$@" 2>&1) || status=$?
    if [ $status = 0 ]; then ok "$name"; else not_ok "$name" "status $status: $output"; fi
}

# waits FILE [N]: until what writes into it waits, or does for the time N
waits() { eventually "what writes '$1' waits" contains "$1" waiting "${2:-1}"; }

finish() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
}
