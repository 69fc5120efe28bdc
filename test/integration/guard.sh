# Shell helpers for tests of the guard in the guest; sourced after tap.sh, guest.sh and sidecar.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # each test uses some of these

mount -t bpf bpf /sys/fs/bpf 2> /dev/null
mount -t securityfs securityfs /sys/kernel/security 2> /dev/null

# A sidecar that loads the guard or lets go of it answers late.
state() {
    local json
    for _ in $(seq 15); do json=$(rdmaquota guard --json 2> /dev/null) && break; done
    sed 's/.*"state":"\([a-z]*\)".*/\1/' <<< "$json"
}
# guard_is STATE: within a minute
guard_is() {
    for _ in $(seq 300); do [ "$(state)" != "$1" ] || break; sleep 0.2; done
    is "the guard's state becomes $1" "$(state)" "$1"
}
# followed [SECONDS]: until the sidecar, which looks each second, has seen what was set. It answers such a request, which the
# commands make, too, once it has.
followed() {
    sleep "${1:-1}"
    /usr/bin/python3 -c '
import socket
with socket.socket(socket.AF_UNIX) as asker:
    asker.settimeout(60)
    asker.connect("/run/rdmaquota/control.sock")
    asker.sendall(b"{\"version\":1,\"request\":\"grant\"}\n")
    asker.recv(1)' 2> /dev/null
}
# become USER COMMAND...: in place of this shell
become() { exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
# known COMMAND...: once what it opens has been seen; users are known from their first opening on
known() {
    rm -f known
    "$@" "$work/raw_uverbs" ioctl 0 < <(sleep 600) > known 2>&1 &
    local opener=$!
    waits known
    followed
    kill $opener
    wait $opener 2> /dev/null
}
# counted TENANT RESOURCE [used|refused]: what the guard has for it on the device
counted() {
    local figure=''
    for _ in $(seq 15); do figure=$(counted_now "$@") && [ "$figure" ] && break; done
    echo "$figure"
}
counted_now() {
    rdmaquota guard --json | /usr/bin/python3 -c '
import json, sys
for tenant in json.load(sys.stdin)["tenants"]:
    if tenant["name"] == sys.argv[1]:
        print(tenant["devices"].get(sys.argv[2], {}).get(sys.argv[3], {}).get(sys.argv[4], 0))
' "$1" "$device" "$2" "${3:-used}"
}
# until_counted TENANT RESOURCE N: within ten seconds
until_counted() {
    for _ in $(seq 50); do [ "$(counted "$1" "$2")" != "$3" ] || return; sleep 0.2; done
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
# waits_or_ends FILE PID: until the program that writes into it waits, or has ended; within a minute
waits_or_ends() {
    for _ in $(seq 1200); do
        { grep -qs waiting "$1" || ! kill -0 "$2" 2> /dev/null; } && return
        sleep 0.05
    done
}
