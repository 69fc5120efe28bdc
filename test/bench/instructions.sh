#!/bin/bash
# instructions.sh COMMAND [ARGUMENT...]: how many instructions a run of it takes in user space, by valgrind.
set -u
output=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1)
count=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' <<< "$output")
[ -n "$count" ] || { echo "valgrind printed no count" >&2; exit 1; }
echo "$count"
