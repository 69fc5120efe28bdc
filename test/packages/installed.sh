#!/bin/bash
# installed.sh DEBS PACKAGE... -- COMMAND...: runs COMMAND when those of the packages in DEBS were installed, as docs/packages.md
# has it, and their policy is in force. Runs as root in the guest, in a root file system that has what they depend on
# (test/vm/roots.sh).
set -eu
debs=$1 packages=()
shift
while [ "$1" != -- ]; do packages+=("$debs/$1"_*.deb); shift; done
shift

# systemd may still be starting, which empties /tmp.
[ ! -d /run/systemd/system ] || until systemctl start basic.target > /dev/null 2>&1; do sleep 0.2; done
log=$(mktemp)
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}" > "$log" 2>&1 ||
    { tail -n 20 "$log"; exit 125; }
rdmaquota reload > /dev/null
exec "$@"
