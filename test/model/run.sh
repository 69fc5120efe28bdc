#!/bin/bash
# run.sh [--long]: searches the model of the ledger for a way to break I1 to I4, and checks that it
# finds the way in each mutant. About two minutes and 1 GB; --long has more processes, deaths and
# resources, and takes about half an hour and 6 GB. The last line is 'N passed, N failed'.
#
# Prints 'SKIP: reason' and exits with 77 without spin or gcc.
set -u
here=$(cd "$(dirname "$0")" && pwd)
long=
case "${1:-}" in
    '') ;;
    --long) long=1 ;;
    *) echo "usage: $0 [--long]" >&2; exit 2 ;;
esac
for tool in spin gcc; do
    command -v $tool > /dev/null || { echo "SKIP: $tool is not installed"; exit 77; }
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
megabytes=$([ "$long" ] && echo 6000 || echo 3500)
passed=0 failed=0

ok() {
    echo "ok - $1"
    passed=$((passed + 1))
}

not_ok() {
    echo "not ok - $1"
    tail -n 40 log | sed 's/^/    # /'
    failed=$((failed + 1))
}

# search "DEFINES" [GCC_FLAG...]: leaves spin's report in `log`
search() {
    local defines=$1 kind=-DSAFETY liveness=
    shift
    case "$defines" in *LIVENESS*) kind=-DNOFAIR liveness=-a ;; esac
    rm -f pan* ./*.trail
    # shellcheck disable=SC2086  # several words
    { spin -a $defines "$here/ledger.pml" && gcc -w $kind -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=$megabytes "$@" -o pan pan.c; } \
        > log 2>&1 || return
    ./pan -m20000 -w24 -n $liveness > log 2>&1
}

# A search to its end: no error, no depth or memory limit met.
complete() {
    grep -q 'errors: 0$' log && grep -q 'Partial Order Reduction' log &&
        ! grep -E -i -q 'search depth too small|not completed|out of memory|MEMLIM|truncated' \
            <(grep -v 'depth reached' log)
}

# holds "NAME" "DEFINES"
holds() {
    SECONDS=0
    search "$2" -O2
    if complete; then
        ok "$1 ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log) states, $SECONDS s)"
    else
        not_ok "$1"
    fi
}

# fails "MUTANT" "INVARIANTS" "DEFINES" [GCC_FLAG...]: spin finds one of these invariants broken
fails() {
    local mutant=$1 expected=$2 defines=$3 broken
    shift 3
    case "$mutant" in MUTANT_*) defines="-DMUTANT $defines" ;; esac
    search "-D$mutant $defines" -O1 "$@"
    broken=$(sed -n -E -e 's/^pan:.*(I[124]_broken|WITNESS_seen).*/\1/p' -e 's/^pan:.*acceptance cycle.*/I3_broken/p' log | head -n 1)
    if [ -n "$broken" ] && [[ " $expected " == *" ${broken%_*} "* ]]; then
        ok "$mutant breaks ${broken%_*}"
    else
        not_ok "$mutant breaks $expected"
    fi
}

# Where processes race for the last of a tenant's limit and die over it.
holds "I1, I2, I4: charge, release, retire, reap, reconcile and prove, one killed" \
    "-DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
holds "I1, I2, I4: three processes prove at once, one killed" "-DLIMIT_TENANT=1 -DPROVERS=3"
holds "I1, I2, I4: the reaper is killed as well" "-DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2 -DKILLS=2"
holds "I1, I2, I4: two resources, roll-back and shrinking" \
    "-DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=1 -DPROOF_ROUNDS=2"
holds "I1, I2, I4: slots claimed, and claimed again" "-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"
holds "I1, I2, I4: the sum over two devices, of which one appears" \
    "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=1 -DPROOF_ROUNDS=2"
holds "I1, I2, I4: a forked child shares the slot, limit per tenant" \
    "-DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
holds "I1, I2, I4: a forked child shares the slot, limit per process" \
    "-DFORK -DS=2 -DLIMIT_PROCESS=1 -DPROOF_ROUNDS=2"
holds "I1, I2, I4: a forked child shares the slot, limit per process over two devices" \
    "-DFORK -DS=2 -DD=2 -DLIMIT_PROCESS_TOTAL=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
holds "I3: one stopped for ever and one killed, the others end" \
    "-DLIVENESS -DSTOPS=1 -DLIMIT_TENANT=1 -DPROVERS=2"
holds "I3: the same with a forked child" "-DLIVENESS -DSTOPS=1 -DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"

if [ "$long" ]; then
    holds "long: three prove twice, two killed" "-DLIMIT_TENANT=1 -DPROOF_ROUNDS=2 -DKILLS=2"
    holds "long: four processes" "-DP=4 -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: two resources, two prove" "-DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=2"
    holds "long: three slots to claim" "-DCLAIM -DS=3 -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: a process starts in the place of a dead one" "-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=1 -DBIRTHS=1"
    holds "long: the sum over two devices, two prove" "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
    holds "long: a forked child among four, two killed" "-DFORK -DP=4 -DS=3 -DLIMIT_TENANT=1 -DPROVERS=2 -DKILLS=2"
    holds "long: I3 where slots are claimed" "-DLIVENESS -DSTOPS=1 -DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"
fi

# Seen to fail: the search finds what is wrong with each of these.
race="-DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
fails MUTANT_SLOT_BEFORE_GATE "I1" "$race"
fails MUTANT_GATE_FIRST_ON_RELEASE "I1" "$race"
fails MUTANT_NO_IN_FLIGHT "I1" "$race"
fails MUTANT_ONE_LOOK "I4" "$race"
fails MUTANT_NO_TAG "I1" "$race"
fails MUTANT_SHORT_TAG "I1" "$race -DLEAKED -DNO_JUDGE"
fails MUTANT_NO_CORRECT "I2" "$race"
fails MUTANT_DENY_UNPROVED "I4" "$race"
fails MUTANT_DEAD_COUNTED "I4" "$race"
fails MUTANT_ONE_BYTE "I4" "$race"
claim="-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2 -DKILLS=0"
fails MUTANT_CLAIM_UNCHECKED "I2" "$claim"
fails MUTANT_CLAIMS_UNCOUNTED "I4" "$claim -DNO_JUDGE"
fails MUTANT_CLAIM_AS_OWNER "I4" "$claim -DNO_JUDGE"
fails MUTANT_FREE_BEFORE_EMPTY "I1" "$claim -DNO_JUDGE"
fails MUTANT_LOCK_BY_DESCRIPTOR "I1 I4" "$claim -DNO_JUDGE"
fails MUTANT_NO_SECOND_LOOK "I1" "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=1 -DKILLS=0"
fails MUTANT_DEVICES_COUNTED_TWICE "I1" "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=1 -DKILLS=0 -DOBJECTS=2 -DNO_JUDGE" -DREVERSE
fails MUTANT_RETIRE_UNDER_CHILD "I1" "-DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=1 -DKILLS=0 -DNO_JUDGE"
stop="-DLIVENESS -DSTOPS=1 -DLIMIT_TENANT=1 -DPROVERS=2"
fails MUTANT_WAIT_FOR_LOCK "I3" "$stop"
fails MUTANT_WAIT_FOR_QUIET "I3" "$stop"
# And it does get to where these claims mean something.
fails WITNESS_PROVED "WITNESS" "$race"
fails WITNESS_CORRECTED "WITNESS" "$race"
fails WITNESS_TAKEN_OVER "WITNESS" "$race -DKILLS=2"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
