#!/bin/bash
# guard_shares_test.sh BUILD: with the guard on, what tenants use is the kernel's figure when shares are divided: a child that
# forges its ledger costs the others nothing. Runs as root in the guest.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
# shellcheck source=test/integration/guard.sh
. "$here/guard.sh"
chmod 755 "$work"
for user in ann cat; do useradd --no-create-home $user; done
objects=$programs/verbs_objects
as() { # USER COMMAND...
    local user=$1
    shift
    exec setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups "$@"
}
lab() {
    cat << END
version = 1
[sidecar]
guard = "deny"
[tenant.lab."*"]
qp = 400
[tenant."lab/ann"]
match = [{ user = "ann" }]
[tenant."lab/cat"]
match = [{ user = "cat" }]
[tenant."lab/cat"."*"]
qp = 300
END
}
# made USER N: how many of N QPs it gets
made() { (as "$1" "$objects" "rc=$2") < /dev/null 2> /dev/null | sed -n 's/^rc: \([0-9]*\) of.*/\1/p'; }
forge() { # AMOUNT: cat's gate of QPs on its first device
    (as cat /usr/bin/python3 -c '
import struct, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(4096 + 12288 + 8)
    file.write(struct.pack("<Q", int(sys.argv[2])))' "$(echo /run/rdmaquota/tenants/lab+cat/here/ledgers/*/ledger)" "$1")
}
# forged AMOUNT: what ann gets while cat, which has ten and had 250, has forged
forged() {
    local keys held
    rm -f hold
    mkfifo hold
    (as cat "$objects" rc=10 wait) < hold > held 2>&1 &
    held=$!
    exec {keys}> hold
    waits held
    made cat 240 > /dev/null  # so that its share is 250
    sleep 11                # until that it asked for them is forgotten
    forge "$1"
    looks_pass
    got=$(made ann 400)
    looks_pass
    got=$(made ann 400)
    echo >&$keys
    exec {keys}>&-
    wait $held
}
lab > policy.toml
rdmaquota reload policy.toml > /dev/null
start_sidecar
guard_is deny
forged 4000000
is "a gate forged upwards costs the others nothing" "$([ "$got" -ge 340 ] && [ "$got" -le 390 ] && echo yes || echo "$got")" yes
forged 0
is "nor does one that is forged downwards" "$([ "$got" -ge 340 ] && [ "$got" -le 390 ] && echo yes || echo "$got")" yes
stop_sidecar
rdmaquota guard off > /dev/null
finish
