#!/bin/sh
# guest_guard.sh BUILD PAIRS REPEATS DEVICE NAME [traced]: what the guard adds to what is made and destroyed on the guest's device, by a
# tenant below two others, which all have limits; bare: nothing is attached. run.sh starts it in the guest that counts
# instructions as time. Prints "NAME.VARIANT.FIGURE VALUE" lines. traced: has the instructions written down instead, for
# traced.py, and the kernel's symbols in /out.
set -eu
build=$1/test/bench pairs=$2 repeats=$3 name=$5 traced=${6-}
device=$4
# shellcheck source=test/bench/guest_variants.sh
. "$(dirname "$0")/guest_variants.sh"
switch bare
cd /run
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || :
limits='qp = 1000000
pd = 1000000
cq = 1000000
mr = 1000000
srq = 1000000
mw = 1000000
ah = 1000000
hca_object = 1000000
mr_bytes = "100GiB"
'
# What others have: 300 tenants, and a program with 12,000 objects.
others() {
    for other in $(seq 300); do printf '[tenant."others/%d"]\nmatch = [{ user = "%d" }]\n' "$other" "$((60000 + other))"; done
    printf '[tenant.others."*"]\n%s' "$limits"
}
hold_many() {
    mkfifo hold
    "$build/../programs/verbs_objects" pd=4000 mw=4000 ah=4000 wait <hold >held &
    exec 5>hold
    until grep -q waiting held; do sleep 0.1; done
}
# watch VARIANT GUARD [MORE]: measures under a sidecar with the guard so, which is stopped meanwhile
watch() {
    {
        printf 'version = 1\n[sidecar]\nguard = "%s"\n' "$2"
        for table in 'node."*"' 'tenant.a."*"' 'tenant."a/b"."*"'; do printf '[%s]\n%s' "$table" "$limits"; done
        printf '[tenant."a/b/c"]\nmatch = [{ user = "root" }]\n[tenant."a/b/c"."*"]\n%s[process."*"]\n%s' "$limits" "$limits"
        [ $# -lt 3 ] || others
    } >guard.toml
    rdmaquota reload guard.toml >/dev/null
    rdmaquotad 2>/run/sidecar.log &
    watcher=$!
    until grep -q 'sees what' /run/sidecar.log; do sleep 0.1; done
    until rdmaquota guard --json | grep -q "\"state\":\"$2\""; do sleep 1; done  # ten seconds after it began
    [ $# -lt 3 ] || hold_many
    kill -STOP $watcher
    repeat "$1"
    kill -KILL $watcher
}
repeat() {
    if [ -n "$traced" ]; then
        for kind in qp mr_4k pd ioctl; do TRACE=$1 "$build/bench_verbs_pairs" "$pairs" $kind; done
        cat /proc/kallsyms >"/out/$1.symbols"
        return
    fi
    "$build/bench_verbs_pairs" 4200 >/dev/null
    i=0
    while [ $i -lt "$repeats" ]; do
        i=$((i + 1))
        measure "$1" "$build/bench_verbs_pairs" "$pairs"
    done
}
repeat bare
watch watched off
watch guarded deny
[ -z "$traced" ] || watch crowded deny more
