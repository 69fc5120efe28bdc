#!/bin/sh
# guest.sh BUILD PAIRS REPEATS DEVICE NAME: the part of the table that needs a device of the kernel, the guest's only one;
# run.sh starts it in the guest that counts instructions as time, with rdmaquota installed and far limits. Prints
# "NAME.VARIANT.FIGURE VALUE" lines.
# Variants by turns: bare (not registered), ours, and rdmacg (bare, and limited by the kernel's rdma cgroup).
set -eu
build=$1/test/bench pairs=$2 repeats=$3 device=$4 name=$5
registration=/etc/libibverbs.d/rdmaquota.driver
group=/sys/fs/cgroup/rdmaquota-bench

switch() {
    case $1 in
        ours) [ -e $registration ] || mv /run/rdmaquota.driver $registration ;;
        *) [ ! -e $registration ] || mv $registration /run/rdmaquota.driver ;;
    esac
}

limited() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' $group "$@"
}

tagged() { # VARIANT COMMAND...
    tag=$1
    shift
    "$@" >/run/bench.out
    sed "s/^/$name.$tag./" /run/bench.out
}

mkdir -p $group
echo "$device hca_handle=100000 hca_object=1000000" >$group/rdma.max

# The kernel numbers objects upwards and its tables get deeper on the way, up to the 4096th; and files are read once.
switch bare
"$build/bench_verbs_pairs" 4200 >/dev/null
for variant in bare ours; do
    switch "$variant"
    "$build/bench_open_device" >/dev/null
done

i=0
while [ $i -lt "$repeats" ]; do
    i=$((i + 1))
    for variant in bare ours rdmacg; do
        switch "$variant"
        prefix=''
        [ $variant != rdmacg ] || prefix=limited
        tagged "$variant" $prefix "$build/bench_verbs_pairs" "$pairs"
        tagged "$variant" $prefix "$build/bench_open_device" --memory
    done
done

switch ours
rdmaquota set "$device" qp=1000 >/dev/null
tagged ours "$build/bench_verbs_death" 1000
echo "$name.ours.guest_death.usage $(rdmaquota show --json | tr -d ' \n' | sed -n 's/.*"qp":{"usage":\([0-9]*\).*/\1/p')"
