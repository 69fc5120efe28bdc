#!/bin/bash
# run.sh BUILD [OPTION...]: the oracle on rxe0; runs as root in the guest after an installation. The last line is
# 'N passed, N failed'. OPTIONs are the oracle's, as --seed; see main.cpp.
set -u
oracle=$1/test/oracle/oracle
shift
printf 'version = 1\n[log]\nlevel = "none"\n' > /tmp/silent.toml
rdmaquota reload /tmp/silent.toml > /dev/null || exit 1
exec timeout 600 "$oracle" "$@"
