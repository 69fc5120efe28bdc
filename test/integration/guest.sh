# Shell helpers for tests in the guest, after an installation; sourced after tap.sh. They work in a new directory.
# shellcheck shell=bash disable=SC2034,SC2154 # out, log and status are for who sources this, device is theirs

work=$(mktemp -d)
cd "$work" || exit 1

# A fresh policy from standard input, live at once.
policy() {
    cat > policy.toml
    rdmaquota reload policy.toml > /dev/null || not_ok "reload" "$(cat policy.toml)"
}

# run PROGRAM...: its output in $out, its stderr in $log, its status in $status
run() {
    out=$("$@" 2> log)
    status=$?
    log=$(cat log)
}

# usage_of RESOURCE: of the tenant on $device. In shell, for it is asked often and python starts slowly in the guest.
usage_of() {
    local cells
    cells=$(rdmaquota show --json)
    cells=${cells%%'"processes"'*}
    cells=${cells#*'"devices"'}
    [[ $cells == *"\"$device\":{"* ]] || cells=''
    cells=${cells#*"\"$device\":{"}
    [[ ${cells%%'}}'*} =~ \"$1\":\{\"usage\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}

# start PROGRAM...: in the background, with its input from the pipe `keys`, until it waits
start() {
    rm -f keys running
    mkfifo keys
    "$@" < keys > running 2>&1 &
    program=$!
    exec 9> keys
    for _ in $(seq 200); do
        grep -q -e waiting -e ready running && return
        sleep 0.05
    done
    not_ok "start $*" "$(cat running)"
}
proceed() { echo >&9; exec 9>&-; wait "$program"; }
