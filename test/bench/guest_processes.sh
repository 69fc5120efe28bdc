#!/bin/sh
# guest_processes.sh BUILD MILLISECONDS REPEATS DEVICE NAME: many processes at once on the guest's device, by its clock;
# run.sh starts it in a guest with two processors. Prints "NAME.VARIANT.FIGURE VALUE" lines.
set -eu
build=$1/test/bench milliseconds=$2 repeats=$3 device=$4 name=$5
# shellcheck source=test/bench/guest_variants.sh
. "$(dirname "$0")/guest_variants.sh"

i=0
while [ $i -lt "$repeats" ]; do
    i=$((i + 1))
    for count in 1 16 64; do
        for variant in bare ours rdmacg; do
            measure "$variant" "$build/bench_verbs_processes" $count "$milliseconds"
        done
    done
done
