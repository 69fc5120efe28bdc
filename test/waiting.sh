# Shell helpers for tests that wait; sourced by tap.sh. A pause costs no process: `read` times out on a pipe that nobody writes to.
# shellcheck shell=bash

# pause SECONDS: sleeps without starting a process
exec {nothing_comes}<> <(:)
pause() { read -r -t "$1" -u "$nothing_comes" _ || :; }

# eventually WHAT COMMAND...: until COMMAND succeeds. After five minutes (RDMAQUOTA_PATIENCE, seconds) a failed check says which
# wait ended in vain, and what COMMAND last printed. Looks ever more seldom, since each look takes time from what it waits for.
# COMMAND runs in this shell: it may set variables, and its output does not appear.
eventually() {
    local what=$1 last=$((SECONDS + ${RDMAQUOTA_PATIENCE:-300})) hundredths=2 interval seen
    shift
    seen=$(mktemp)
    until "$@" > "$seen" 2>&1; do
        if [ $SECONDS -ge $last ]; then
            not_ok "waiting: $what" "'$*' last printed:" "$(tail -n 20 "$seen")"
            rm -f "$seen"
            return 1
        fi
        printf -v interval '0.%02d' $hundredths
        pause "$interval"
        [ $hundredths -ge 50 ] || hundredths=$((hundredths * 3 / 2 + 1))
    done
    rm -f "$seen"
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
