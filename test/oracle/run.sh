#!/bin/bash
# run.sh [--kill-sidecar SEED] BUILD [OPTION...]: the oracle on rxe0; runs as root in the guest after an installation.
# The last line is 'N passed, N failed'. OPTIONs are the oracle's, as --seed; see main.cpp. With --kill-sidecar,
# rdmaquotad runs meanwhile, is killed at random moments, and may report no bypass.
set -u
here=$(dirname "$0")
kill_sidecar=''
if [ "$1" = --kill-sidecar ]; then
    kill_sidecar=$2
    shift 2
fi
oracle=$1/test/oracle/oracle
shift
printf 'version = 1\n[log]\nlevel = "none"\n' > /tmp/silent.toml
rdmaquota reload /tmp/silent.toml > /dev/null || exit 1
[ "$kill_sidecar" ] || exec timeout 600 "$oracle" "$@"

# shellcheck source=test/integration/tap.sh
. "$here/../integration/tap.sh"
# shellcheck source=test/integration/sidecar.sh
. "$here/../integration/sidecar.sh"
cd "$(mktemp -d)" || exit 1
unruly_sidecar "$kill_sidecar"
status=0
timeout 600 "$oracle" "$@" > oracle.log || status=$?
grep -v -E '^[0-9]+ passed, [0-9]+ failed$' oracle.log
read -r passed _ failed _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed$' oracle.log) || passed=0 failed=0
is "the oracle comes to its end" "$status $([ "$failed" = 0 ] || echo failed)" "0 "
calm_sidecar
is "no sidecar took a program for one that goes around the quota" "$(grep ' bypass: ' lives.log)" ""
stop_sidecar
finish
