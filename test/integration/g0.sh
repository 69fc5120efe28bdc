#!/bin/bash
set -u
. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/sidecar.sh"
programs=$1/test/programs
cd "$(mktemp -d)" || exit 1
cat > p.toml <<'X'
version = 1
[sidecar]
guard = "deny"
[tenant.default."*"]
pd = 5
qp = 3
mr_bytes = "1MiB"
X
rdmaquota reload p.toml
time start_sidecar
cat sidecar.log
ls -R /sys/fs/bpf | head -30
sleep 2

one() { sleep 1 | timeout 20 "$@"; echo "status ${PIPESTATUS[1]}"; }
one "$programs/raw_uverbs" ioctl 10
one "$programs/raw_uverbs" write 10
sleep 9
one "$programs/raw_uverbs" write 10 
one "$programs/verbs_objects" rc=4 mr=2:900000 
cat sidecar.log
bpftool prog list | grep -A3 on_ioctl | head -4
/usr/bin/python3 -c 'import socket
control = socket.socket(socket.AF_UNIX)
control.connect("/run/rdmaquota/control.sock")
control.sendall(b"{\"version\":1,\"request\":\"guard\"}\n")
print(control.makefile().readline())'
