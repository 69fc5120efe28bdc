# Shell helper for tests that send signals; test/house.py says who has to source it. As test/processes.hpp for C++.
# shellcheck shell=bash

# kill [-SIGNAL] PID...: the shell's own, but a failed check for a pid that is not one process: none at all, 0 (the whole
# test run) or -1 (every process of the machine).
kill() {
    local signal=() pid
    case ${1-} in -*) signal=("$1"); shift ;; esac
    for pid in "${@:-}"; do
        [[ $pid =~ ^(%[0-9]+|[1-9][0-9]*)$ ]] && continue
        if declare -F not_ok > /dev/null; then not_ok "a signal is sent to one process" "pid: '$pid'"; fi
        return 1
    done
    builtin kill "${signal[@]}" "$@"
}
