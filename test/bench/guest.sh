#!/bin/sh
# guest.sh BUILD PAIRS REPEATS DEVICE NAME: the part of the table that needs a device of the kernel, the guest's only
# one; run.sh starts it in the guest that counts instructions as time, with rdmaquota installed and far limits. Prints
# "NAME.VARIANT.FIGURE VALUE" lines.
set -eu
build=$1/test/bench pairs=$2 repeats=$3 device=$4 name=$5
# shellcheck source=test/bench/guest_variants.sh
. "$(dirname "$0")/guest_variants.sh"

# The kernel numbers objects upwards and its tables get deeper on the way, up to the 4096th; and files are read once.
switch bare
"$build/bench_verbs_pairs" 4200 >/dev/null
for variant in bare ours; do
    switch $variant
    "$build/bench_open_device" >/dev/null
done

variants="bare ours rdmacg"
[ "$device" != mlx5_0 ] || variants="$variants early"
i=0
while [ $i -lt "$repeats" ]; do
    i=$((i + 1))
    for variant in $variants; do
        measure "$variant" "$build/bench_verbs_pairs" "$pairs"
        measure "$variant" "$build/bench_open_device"
    done
done
for variant in bare ours; do
    measure "$variant" "$build/bench_verbs_pairs" "$pairs" 100000
done

# What the sidecar's program in the kernel adds by itself: its reader is stopped once it is attached.
watch=$1/test/integration/kernel_watch
if [ -x "$watch" ]; then
    "$watch" 600 >/run/watch.out &
    watcher=$!
    until grep -q '^attached: true' /run/watch.out; do sleep 0.1; done
    kill -STOP $watcher
    "$build/bench_verbs_pairs" 4200 >/dev/null
    i=0
    while [ $i -lt "$repeats" ]; do
        i=$((i + 1))
        measure watched "$build/bench_verbs_pairs" "$pairs"
    done
    kill -KILL $watcher
fi

rdmaquota set "$device" qp=1000 >/dev/null
measure ours "$build/bench_verbs_death" 1000
usage=$(rdmaquota show --json | tr -d ' \n' | sed -n 's/.*"qp":{"usage":\([0-9]*\).*/\1/p')
echo "$name.ours.guest_death.usage $usage"
