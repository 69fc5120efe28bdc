# Shell helpers for tests of the guard in the guest; sourced after tap.sh, guest.sh and sidecar.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # each test uses some of these

# From its first moment on, the guard kills who makes too much around the look; else it would for ten seconds not.
export RDMAQUOTA_TEST_GUARD_JUDGES_AT_ONCE=yes

# state: the guard's. A sidecar that loads the guard or lets go of it answers late.
state() {
    local json=''
    eventually "rdmaquota guard answers" guard_json
    json=${json#*'"state":"'}
    echo "${json%%'"'*}"
}
guard_json() { json=$(rdmaquota guard --json 2> /dev/null); }
# guard_is STATE
guard_is() {
    eventually "the guard's state becomes $1" prints "$1" state
    is "the guard's state becomes $1" "$(state)" "$1"
}
# followed: until the sidecar has taken up what was set, and has gone a whole round since
followed() {
    local rounds
    ask grant > /dev/null
    rounds=$(ask status rounds)
    eventually "the sidecar goes a round" gone_round $((rounds + 1))
}
gone_round() { [ "$(ask status rounds)" -ge "$1" ]; }
# become USER COMMAND...: in place of this shell
become() { exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
# known COMMAND...: once what it opens has been seen; users are known from their first opening on
known() {
    rm -f known
    held known "$@" "$work/raw_uverbs" ioctl 0
    followed
    release
}
# counted TENANT RESOURCE [used|refused]: what the guard has for it on the device. In shell, since Python starts slowly in the guest.
counted() {
    local figure=''
    eventually "rdmaquota guard answers" count_of "$@"
    echo "$figure"
}
count_of() { figure=$(counted_now "$@") && [ "$figure" ]; }
counted_now() {
    local json text
    json=$(rdmaquota guard --json) || return
    text=${json#*"\"name\":\"$1\",\"devices\":{"}
    [ "$text" != "$json" ] || return 0
    text=${text%%'"name":'*}
    [[ $text == *"\"$device\":{"* ]] || text=''
    text=${text#*"\"$device\":{"}
    if [[ ${text%%'}}'*} =~ \"$2\":\{[^}]*\"${3:-used}\":([0-9]+) ]]; then echo "${BASH_REMATCH[1]}"; else echo 0; fi
}
# until_counted TENANT RESOURCE N
until_counted() { eventually "the guard counts $3 of $2 in $1" prints "$3" counted "$1" "$2"; }
# held FILE COMMAND...: runs it in the background until it waits, its output in FILE; `release` ends it. One at a time.
held() {
    local file=$1
    shift
    rm -f held.input
    mkfifo held.input
    "$@" < held.input > "$file" 2>&1 &
    holder=$!
    exec 6<> held.input
    waits "$file"
}
release() {
    exec 6>&-
    kill "$holder" 2> /dev/null
    wait "$holder" 2> /dev/null
}
kernel_pds() { rdma resource show "$device" | sed -n 's/.* pd \([0-9]*\) .*/\1/p'; }
own_pds=$(kernel_pds)
pds() { echo $(($(kernel_pds) - own_pds)); }
runs_32_bit() { [ -x "$programs/raw_compat" ] && "$programs/raw_compat" > /dev/null 2>&1; }
killed_so_far() { rdmaquota guard --json | sed 's/.*"killed":\([0-9]*\).*/\1/'; }
# unlisted COMMAND...: where libibverbs is told of no provider of ours
# shellcheck disable=SC2016 # expanded by the inner shell
unlisted() { unshare --mount sh -c 'mount --bind /dev/null /etc/libibverbs.d/rdmaquota.driver && exec "$@"' unlisted "$@"; }
guard_policy() { # GUARD PDS
    cat << END
version = 1
[sidecar]
guard = "$1"
[tenant.default."*"]
pd = $2
qp = 3
mr_bytes = "1MiB"
END
}
# begin COMMAND...: runs it until it waits or has ended; what it printed is in $out. `leave` lets it go on to its end.
begin() {
    rm -f keys tried
    mkfifo keys
    "$@" < keys > tried 2>&1 &
    program=$!
    exec 8<> keys
    waits_or_ends tried $program
    out=$(grep -v waiting tried)
}
leave() { # its exit status is in $ended
    echo >&8
    exec 8>&-
    wait $program 2> /dev/null
    ended=$?
}
# try COMMAND...: the same to its end; what the kernel had of PDs before is in $have
try() {
    begin "$@"
    have=$(pds)
    leave
}
# waits_or_ends FILE PID: until the program that writes into it waits, or has ended
waits_or_ends() { eventually "what writes '$1' waits or ends" waiting_or_ended "$@"; }
waiting_or_ended() { contains "$1" waiting || ended "$2"; }
