#!/bin/bash
# ceilings_test.sh BUILD: ceilings of a cluster on a node: the provider holds real programs to them, and a program that asks waits for more;
# they stay while the sidecar starts again and the policy is put in force. Runs as root in the guest after an installation.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/sidecar.sh"
objects=$programs/verbs_objects
creates() { "$objects" "$@" 2> log | grep -o '^mr: [0-9]* of'; }
# deliver NUMBER AMOUNT [BOOT]: as the agent does; prints the report's number and what is bound, or the error
deliver() {
    /usr/bin/python3 - "$@" << 'PYTHON'
import json
import socket
import sys

directory = "/run/rdmaquota"
boot = open(f"{directory}/cluster-boot", encoding="utf-8").read().strip() if len(sys.argv) < 4 else sys.argv[3]
client = socket.socket(socket.AF_UNIX)
client.connect(f"{directory}/control.sock")
delivery = {"cluster_epoch": 1, "epoch": 1, "number": int(sys.argv[1]), "boot": boot,
            "ceilings": [{"id": 4, "tenant": "default", "resource": "mr", "amount": int(sys.argv[2])}]}
client.sendall(json.dumps({"version": 1, "request": "cluster", "delivery": delivery}).encode() + b"\n")
answer = json.loads(client.makefile().readline())
report = answer.get("report")
print(f"{report['number']} {report['pools'][0]['bound']}" if report else answer["error"])
PYTHON
}

policy << 'POLICY'
version = 1
[tenant.default]
cluster = ["mr"]
POLICY
start_sidecar
is "before the cluster assigned anything nothing is created" "$(creates mr=3)" "mr: 0 of"
has "and the denial says why" "$(cat log)" "what this node may use at present of what the cluster lets the tenant use on all nodes"
deliver 0 0 none > /dev/null    # the sidecar names its boot when it is first asked
is "a ceiling is put in force and acknowledged" "$(deliver 5 2)" "5 2"
is "a program creates as much" "$(creates mr=3)" "mr: 2 of"
has "show says that it is the cluster's" "$(rdmaquota show --limits)" "cluster"
is "an older ceiling is not" "$(deliver 4 9)" "5 2"
is "nor one of another boot" "$(deliver 6 9 another)" "5 2"
rdmaquota reload policy.toml > /dev/null
is "it stays when the policy is put in force again" "$(creates mr=3)" "mr: 2 of"
stop_sidecar
is "and without the sidecar" "$(creates mr=3)" "mr: 2 of"
start_sidecar
is "another sidecar goes on with it" "$(deliver 4 9)" "5 2"
start "$objects" wait mr=3
is "a higher one is taken" "$(deliver 7 3)" "7 3"
proceed
is "by programs that run, too" "$(grep -o '^mr: [0-9]* of' running)" "mr: 3 of"
start "$objects" mr=3 wait
until_waiting 1
is "what is in use is acknowledged with a lower one" "$(deliver 8 1)" "8 3"
is "and nothing more is created" "$(creates mr=1)" "mr: 0 of"
proceed
stop_sidecar
finish
