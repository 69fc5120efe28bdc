#!/bin/bash
# sidecar_powers_test.sh BUILD: with the capabilities that its systemd unit leaves it, rdmaquotad can do all that it is
# for; without any one of them something is lost, and it says what. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
unit=$1/rdma-core.d/rdmaquotad.service
read -r -a powers <<< "$(sed -n 's/^CapabilityBoundingSet=//p' "$unit")"

# What the powers are needed for: processes, and a cgroup, of other users, on a node where /proc shows to each user
# its own processes only, and to a group of monitors all.
make_group
chown -R 65534 $group
chmod 644 $group/rdma.max
mount -o remount,hidepid=2,gid=1 /proc
mount --bind /proc/$$ /proc/1 # the node's mounts are this test's
chmod 711 "$work"

# sidecar_with CAPABILITY...: started with these and mounts of its own, as systemd does it; until it has said what it sees
sidecar_with() {
    local set=-all power
    for power; do set+=,+${power#CAP_}; done
    : > sidecar.log
    unshare --mount --propagation slave \
        setpriv --no-new-privs --inh-caps -all --bounding-set "${set,,}" rdmaquotad 2>> sidecar.log &
    sidecar=$!
    eventually "a sidecar with $* has said what it sees" has_begun
}
has_begun() { contains sidecar.log 'sees what' || contains sidecar.log 'not seen'; }
policy <<< 'version = 1
[tenant.default]
backstop = "/sidecar"
[tenant.default."*"]
hca_handle = 4
hca_object = 40
[tenant."user/{user}"]
match = [{ group = "65500" }]'
# as_other PROGRAM...: as another user, in the cgroup
as_other() { in_group setpriv --reuid=65534 --clear-groups "$@"; }

# makes_a_tenant: whether a user who asks for the tenant that it belongs to gets one with a ledger of its own, and
# whether that has a file system of its own (`mounted`)
makes_a_tenant() {
    local tenant="/run/rdmaquota/tenants/user+#65533" writable=''
    setpriv --reuid=65533 --regid=65500 --clear-groups /usr/bin/python3 -c 'import socket
control = socket.socket(socket.AF_UNIX)
control.connect("/run/rdmaquota/control.sock")
control.sendall(b"{\"version\":1,\"request\":\"instance\"}\n")
print("#", control.makefile().readline().strip())'
    setpriv --reuid=65533 --clear-groups test -w "$tenant"/here/ledgers/5/ledger && writable=yes
    mounted=''
    mountpoint -q "$tenant/here/ledgers" && mounted=yes
    umount -l "$tenant/here/ledgers" 2> /dev/null
    rm -rf "$tenant"
    [ -n "$writable" ]
}

export RDMAQUOTA_TEST_GUARD_JUDGES_AT_ONCE=yes

# abilities CAPABILITY...: which of its tasks a sidecar with these does
abilities() {
    able=''
    sidecar_with "$@"
    grep -q 'sees what' sidecar.log && able+=' program'
    start as_other "$programs/raw_uverbs" ioctl 5
    await "pd: 5 in the kernel" && [[ $line == *"pid $program (raw_uverbs)"* ]] && able+=' names'
    proceed
    await "bypass_ended"
    [ "$(bound)" = "rxe0 hca_handle=4 hca_object=40" ] && able+=' backstop'
    makes_a_tenant && able+=' tenants'
    [ -n "$mounted" ] && able+=' mounts'
    stop_sidecar
}
guard_denies() { rdmaquota guard --json | grep -q '"state":"deny"'; }
# kills_a_maker: whether it ends a process that made too much by write(2) before it was known whose it is
kills_a_maker() {
    eventually "the guard refuses" guard_denies
    kill -STOP "$sidecar"
    start setpriv --reuid=$((64000 + RANDOM % 1000)) --clear-groups "$programs/raw_uverbs" write 60
    kill -CONT "$sidecar"
    eventually "the sidecar has judged it" grep -q -e 'killed: pid' -e 'cannot be killed' sidecar.log
    kill -9 $program 2> /dev/null
    exec 9>&-
    wait $program 2> /dev/null
    grep -q 'killed: pid' sidecar.log
}

# left_without CAPABILITY: what it can still do, as we know; everything without one that we know of no use for
left_without() {
    case $1 in
        CAP_SYS_ADMIN) echo ' names backstop tenants' ;;
        CAP_SYS_PTRACE) echo ' program backstop' ;;
        CAP_SYS_CHROOT) echo ' program names backstop tenants' ;;
        CAP_DAC_OVERRIDE) echo ' program names tenants mounts' ;;
        *) echo ' program names backstop tenants mounts' ;;
    esac
}

abilities "${powers[@]}"
is "with all that its unit leaves it, it can do everything" "$able" ' program names backstop tenants mounts'
# without POWER: the others
without() {
    local other
    others=()
    for other in "${powers[@]}"; do [ "$other" = "$1" ] || others+=("$other"); done
}
for power in "${powers[@]}"; do
    [ "$power" != CAP_KILL ] || continue  # below
    without "$power"
    abilities "${others[@]}"
    echo "# without $power:$able; $(grep -m 1 -e 'not seen' -e 'backstop:' sidecar.log)"
    is "without $power it can do less" "$able" "$(left_without "$power")"
done
policy <<< 'version = 1
[sidecar]
guard = "deny"
[tenant.default."*"]
pd = 4
[tenant."user/{user}"]
match = [{ group = "65500" }]'
for power in CAP_KILL none; do
    without $power
    sidecar_with "${others[@]}"
    kills_a_maker
    is "without $power it ends who made too much before it was known" $? "$([ $power = none ]; echo $?)"
    stop_sidecar
    rdmaquota guard off > /dev/null
done
finish
