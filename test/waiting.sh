# Shell helpers for tests that wait; sourced by tap.sh. A pause costs no process: `read` times out on a pipe that nobody writes to.
# shellcheck shell=bash

# pause SECONDS: sleeps without starting a process
exec {nothing_comes}<> <(:)
pause() { read -r -t "$1" -u "$nothing_comes" _ || :; }

# eventually WHAT COMMAND...: until COMMAND succeeds. After five minutes (RDMAQUOTA_PATIENCE, seconds) a failed check says which
# wait ended in vain, and what COMMAND last printed. Looks ever more seldom, since each look takes time from what it waits for.
# COMMAND runs in this shell: it may set variables, and its output does not appear.
eventually() { # its own variables have long names, since COMMAND sees them
    local eventually_what=$1 eventually_last=$((SECONDS + ${RDMAQUOTA_PATIENCE:-300})) eventually_hundredths=2 eventually_pause eventually_output
    shift
    eventually_output=$(mktemp)
    until "$@" > "$eventually_output" 2>&1; do
        if [ $SECONDS -ge $eventually_last ]; then
            not_ok "waiting: $eventually_what" "'$*' last printed:" "$(tail -n 20 "$eventually_output")"
            rm -f "$eventually_output"
            return 1
        fi
        printf -v eventually_pause '0.%02d' $eventually_hundredths
        pause "$eventually_pause"
        [ $eventually_hundredths -ge 50 ] || eventually_hundredths=$((eventually_hundredths * 3 / 2 + 1))
    done
    rm -f "$eventually_output"
}

# prints WANTED COMMAND...: whether COMMAND prints WANTED; a condition for `eventually`
prints() {
    local seen
    seen=$("${@:2}" 2>&1)
    printf 'seen: %s\nwanted: %s\n' "$seen" "$1"
    [ "$seen" = "$1" ]
}

# contains FILE TEXT [N]: whether N lines of FILE, at least (1), have TEXT in them; a condition for `eventually`
contains() {
    local line times=0
    while IFS= read -r line || [ "$line" ]; do
        if [[ $line == *"$2"* ]]; then times=$((times + 1)); fi
    done 2> /dev/null < "$1"
    [ "$times" -ge "${3:-1}" ] || { tail -n 20 "$1"; return 1; }
}

# ended PID: whether that child has ended; a condition for `eventually`
ended() { ! builtin kill -0 "$1" 2> /dev/null; }
