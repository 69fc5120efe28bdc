#!/bin/bash
# objects_test.sh BUILD: what programs are told of the device, what they do with QPs, and the ports that
# these are bound to. Runs as root in the guest after an installation. rxe0 has one port, so moves between
# two are tested in test/unit/provider/wrap_test.cpp alone.
set -u
# shellcheck source=test/integration/guest.sh
. "$(dirname "$0")/guest.sh"
states=$programs/qp_states

# run_line PROGRAM...: as run, with the output in one line
run_line() {
    run "$@"
    out=$(paste -sd ' ' <<< "$out")
}
# running_line: the output of the program that was started, without denials, in one line
running_line() { grep -v '^rdmaquota:' running | paste -sd ' '; }

# One Python for all, since it takes a second to start in the guest.
coproc EVALUATOR { exec python3 -IS -c '
import json, sys
for expression in sys.stdin:
    t = json.loads(sys.stdin.readline())["tenants"][0]
    print(eval(expression), flush=True)'; }
# shown EXPRESSION: of the only tenant `t`
shown() {
    local shown
    printf '%s\n' "$1" "$(rdmaquota show --json)" >&"${EVALUATOR[1]}"
    read -r shown <&"${EVALUATOR[0]}"
    echo "$shown"
}
at_port() { shown "t['devices'].get('rxe0/1', {}).get('qp', {}).get('usage', 0)"; }

# What the kernel lists at port 1, without its own QPs.
kernel_at_port() { rdma resource show qp link rxe0/1 | grep -c "comm qp_states"; }

# --- device attributes -----------------------------------------------------------------------------
clamped='[tenant.default."*"]
qp = 5
recv_wr = 300
mr_bytes = "1MiB"'
policy <<< "version = 1
$clamped"
run_line "$states" attr
lacks "without clamp_device_attr the device's own attributes are told" "$out" "max_qp 5 "
has "which are told" "$out" "attr: ok"
policy <<< "version = 1
clamp_device_attr = true
$clamped"
run_line "$states" qp=2 attr mr=4096 attr
is "clamped: both calls tell what the process has and may have, and how large" "$out" \
    "qp: ok max_qp 5 5, max_qp_wr 292 292, max_mr_size 1048576 1048576 attr: ok \
mr: ok max_qp 5 5, max_qp_wr 292 292, max_mr_size 1044480 1044480 attr: ok"
start "$states" qp=3 wait
run_line "$states" attr
is "what another process has is not told" "${out%% attr*}" "max_qp 2 2, max_qp_wr 288 288, max_mr_size 1048576 1048576"
run_line "$states" qp=3
is "and what was told is true" "$out" "qp: EDQUOT"
proceed
run_line ibv_devinfo -v -d rxe0
has "ibv_devinfo shows it" "$(tr -s '\t ' ' ' <<< "$out")" "max_qp: 5 "
run_line rdmaquota run --clamp-device-attr --limit qp=3 -- "$states" attr
has "run --clamp-device-attr does the same for one command" "$out" "max_qp 3 3"

# --- ports -----------------------------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."rxe0/1"]
qp = 2'
start "$states" qp=1 init=1 qp=1 init=1 qp=1 init=1 wait
is "the third QP cannot be bound to a port with qp = 2" "$(running_line)" \
    "qp: ok init: ok qp: ok init: ok qp: ok init: EDQUOT waiting"
has "and the line names the port and what allows it" "$(cat running)" \
    "qp on rxe0/1 denied (EDQUOT): tenant default uses 2 of 2, 1 more asked by \
pid $program (qp_states); to allow it: rdmaquota set rxe0/1 qp=3"
is "the port's usage is the kernel's" "$(at_port)" "$(kernel_at_port)"
is "which is 2" "$(kernel_at_port)" 2
is "show tells usage, limit and peak of the port" "$(shown "t['devices']['rxe0/1']['qp']")" \
    "{'usage': 2, 'limit': 2, 'peak': 2, 'configured': 2, 'guarantee': 0, 'soft': None, 'room': 0, 'reason': None}"
is "and the process's share" "$(shown "t['processes'][0]['devices']['rxe0/1']['qp']['usage']")" 2
has "the event names the port" "$(rdmaquota events | tail -n 1)" "rxe0/1 qp"
run_line "$states" qp=1 init=1
is "another process is denied as well" "$out" "qp: ok init: EDQUOT"
rdmaquota set rxe0/1 qp=3 > /dev/null
run_line "$states" qp=1 init=1
is "a limit that is set is live" "$out" "qp: ok init: ok"
kill -9 "$program"
wait "$program" 2> /dev/null
exec 9>&-
is "kill -9 gives the port back" "$(at_port)" 0

start "$states" qp=1 init=1 reset init=1 error reset wait
is "RESET and back" "$(running_line)" "qp: ok init: ok reset: ok init: ok error: ok reset: ok waiting"
is "a QP in RESET stays at its port, as in the kernel" "$(at_port) $(kernel_at_port)" "1 1"
proceed
run_line "$states" qp=1 init=2 init=0
is "the kernel refuses ports that are not there" "$out" "qp: ok init: EINVAL init: EINVAL"
is "and they take no room in the ledger" "$(shown "[d for d in t['devices'] if '/' in d]")" "['rxe0/1']"
rdmaquota set rxe0/1 qp=0 > /dev/null
run_line "$states" qp=1 init=1 init=2 drop qp=1
is "denied or failed, the QP can be destroyed" "$out" "qp: ok init: EDQUOT init: EINVAL drop: ok qp: ok"
policy <<< 'version = 1'
start "$states" qp=1 init=1 wait
is "a port that nobody limits is not counted" "$(at_port)" 0
proceed
policy <<< 'version = 1
[tenant.default."rxe0/1"]
qp = 9'
start "$states" qp=1 init=1 qp=1 init=1 drop wait
is "a destroyed QP leaves its port" "$(at_port) $(kernel_at_port)" "1 1"
proceed
start "$states" qp=1 init=1 close wait
is "a closed device keeps its ports as long as the kernel keeps its queues" "$(at_port)" "$(kernel_at_port)"
proceed
rdmaquota set total qp=2 > /dev/null
run_line "$states" qp=1 init=1 qp=1 init=1 qp=1
is "ports are in no sum over devices" "$out" "qp: ok init: ok qp: ok init: ok qp: EDQUOT"
policy <<< 'version = 1'
run_line env RDMAQUOTA_LIMIT=rxe0/1:qp=1 "$states" qp=1 init=1 qp=1 init=1
is "the environment tightens a port" "$out" "qp: ok init: ok qp: ok init: EDQUOT"
has "and the line says so" "$log" "the limit comes from an environment variable"
run_line rdmaquota run --limit rxe0/1:qp=1 -- "$states" qp=1 init=1 qp=1 init=1
is "as does run" "$out" "qp: ok init: ok qp: ok init: EDQUOT"
run rdmaquota set rxe0/1 mr=1
has "other resources at a port are refused" "$log" "mr is no resource of a port"
printf 'version = 1\n[process."rxe0/1"]\n  cq = 1\n' > bad.toml
run rdmaquota reload bad.toml
has "in the policy file with file, line and column" "$log" "bad.toml:3:3: cq is no resource of a port"

# --- what the device cannot do ----------------------------------------------------------------------
policy <<< 'version = 1
[tenant.default."*"]
mr = 0
dm = 0
xrcd = 0
counters = 0
wq = 0'
without=$(bare "$programs/probes")
has "programs find out by errno what the device cannot do" "$without" "dm: EOPNOTSUPP"
run "$programs/probes"
is "no limit hides it" "$out" "$without"
is "nor is a denial logged" "$log" ""

# --- activity --------------------------------------------------------------------------------------
rm -rf "$default_ledger"
policy <<< 'version = 1'
start "$states" qp=1 init=1 flush qp=1 init=1 rtr reset wait
counted="'init': {'done': 2, 'failed': 0}, 'reset': {'done': 1, 'failed': 0}, 'rtr': {'done': 0, 'failed': 1}"
of_interest="{k: v for k, v in sorted(a['qp'].items()) if any(v.values()) and k != 'err'}, a['cq_events']"
is "the process's activity are counted" "$(shown "(lambda a: ($of_interest))(t['processes'][0]['activity']['rxe0'])")" \
    "({$counted}, 1)"
is "and the device's" "$(shown "(lambda a: ($of_interest))(t['activity']['rxe0'])")" "({$counted}, 1)"
is "a QP in ERROR" "$(shown "t['activity']['rxe0']['qp']['err']")" "{'done': 1, 'failed': 0}"
kill -9 "$program"
wait "$program" 2> /dev/null
exec 9>&-
run_line "$states" qp=1 init=1 flush
is "the device's counts outlive processes, killed or ended" \
    "$(shown "(lambda a: ($of_interest))(t['activity']['rxe0'])")" \
    "({${counted/"'done': 2"/"'done': 3"}}, 2)"
policy <<< 'version = 1
mode = "off"'
run_line "$states" qp=1 init=1 flush
is "in the mode off nothing is counted" "$(shown "t['activity']['rxe0']['cq_events']")" 2

finish
