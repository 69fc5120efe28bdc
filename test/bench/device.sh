#!/bin/bash
# device.sh BUILD REPEATS SPAWNS: what needs a device but no kernel: on fake0, with rdmaquota and without by turns.
# run.sh starts it under fake_device.sh and `rdmaquota run`, whose environment is what makes the difference. Prints
# "native.VARIANT.FIGURE VALUE..." lines.
set -eu
programs=$1/test/bench repeats=$2 spawns=$3

variant() { # NAME COMMAND...
    local name=$1
    shift
    if [ "$name" = bare ]; then
        env -u RDMAQUOTA_DIR RDMAV_DRIVERS="$programs/libfake" "$@"
    else
        "$@"
    fi | sed "s/^/native.$name./"
}

for ((i = 0; i < repeats; i++)); do
    for name in bare ours; do
        variant $name "$programs/bench_open_device" --memory
    done
done
for ((i = 0; i < spawns; i++)); do
    for name in bare ours; do
        variant $name "$programs/bench_spawn" 300 "$programs/bench_open_device" --qp
    done
done
