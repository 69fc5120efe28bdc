#!/bin/bash
# run.sh [--long] [--trace] [PART...]: searches the models of the ledger, of shares and of a rate for a way to break I1 to I4, and
# checks that it finds the way in each mutant. With PARTs, only those checks whose name or settings
# contain one. About four minutes of one core and 1 GB; --long has more processes, deaths and
# resources, and takes about half an hour and 6 GB. --trace prints what was found in the mutants, too.
# The last line is 'N passed, N failed'.
#
# Prints 'SKIP: reason' and exits with 77 without spin, gcc or tcc, which compiles what is searched in an instant.
set -u
here=$(cd "$(dirname "$0")" && pwd)
long='' trace=''
parts=()
for word in "$@"; do
    case "$word" in
        --long) long=1 ;;
        --trace) trace=1 ;;
        -*) echo "usage: $0 [--long] [--trace] [PART...]" >&2; exit 2 ;;
        *) parts+=("$word") ;;
    esac
done
for tool in spin gcc tcc; do
    command -v $tool > /dev/null || { echo "SKIP: $tool is not installed"; exit 77; }
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
megabytes=$([ "$long" ] && echo 6000 || echo 3000)
passed=0 failed=0
TIMEFORMAT=%U
model=ledger.pml

ok() {
    echo "ok - $1"
    passed=$((passed + 1))
}

not_ok() {
    echo "not ok - $1"
    tail -n 40 log | sed 's/^/    # /'
    show_trace
    failed=$((failed + 1))
}

# wanted TEXT: whether it is among the parts asked for
wanted() {
    local part
    [ ${#parts[@]} != 0 ] || return 0
    for part in "${parts[@]}"; do [[ $1 != *"$part"* ]] || return 0; done
    return 1
}

# search "DEFINES" COMPILER [FLAG...]: leaves spin's report in `log` and the seconds of CPU in `seconds`
search() {
    local defines=$1 compiler=$2 kind=-DSAFETY liveness=
    shift 2
    case "$defines" in *LIVENESS*) kind=-DNOFAIR liveness=-a ;; esac
    rm -f pan* ./*.trail steps
    # shellcheck disable=SC2086  # several words
    {
        spin -a $defines "$here/$model" &&
            "$compiler" -w $kind -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=$megabytes "$@" -o pan pan.c
    } > log 2>&1 || return
    { time ./pan -m20000 -w24 -n $liveness > log 2>&1; } 2> seconds
    [ ! -f $model.trail ] || read_trail "$defines"
}

# read_trail "DEFINES": leaves a counterexample in `steps`, a line for each step
read_trail() {
    # shellcheck disable=SC2086  # several words
    spin -t -T -k $model.trail $1 "$here/$model" | grep -E '^process|assertion|CYCLE' > steps
}

show_trace() { [ ! -f steps ] || sed 's/^/    # /' steps; }

# A search to its end: no error, no depth or memory limit met.
complete() {
    grep -q 'errors: 0$' log && grep -q 'Partial Order Reduction' log &&
        ! grep -E -i -q 'search depth too small|not completed|out of memory|MEMLIM|truncated' \
            <(grep -v 'depth reached' log)
}

# holds "NAME" "DEFINES" [COMPILER]: tcc where gcc would take longer to compile than it makes the search shorter
holds() {
    wanted "$1 $2" || return 0
    search "$2" "${3:-gcc}" -O1
    local states
    states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log)
    if complete; then
        ok "$1 (complete: $states states, $(cat seconds) s)"
    else
        not_ok "$1 (${states:-no} states)"
    fi
}

# fails "MUTANT" "INVARIANTS" "DEFINES" [FLAG...]: spin finds one of these invariants broken
fails() {
    local mutant=$1 expected=$2 defines=$3 broken
    wanted "$1 $2 $3" || return 0
    shift 3
    case "$mutant" in MUTANT_*) defines="-DMUTANT $defines" ;; esac
    search "-D$mutant $defines" tcc "$@"
    broken=$(sed -n -E -e 's/^pan:.*(I[124]_broken|WITNESS_seen).*/\1/p' \
        -e 's/^pan:.*acceptance cycle.*/I3_broken/p' log | head -n 1)
    if [ -n "$broken" ] && [[ " $expected " == *" ${broken%_*} "* ]]; then
        ok "$mutant is caught by ${broken%_*} ($(cat seconds) s)"
        [ ! "$trace" ] || show_trace
    else
        not_ok "$mutant is caught by $expected"
    fi
}

if wanted names; then
    same="code and model name the same steps"
    if "$here/names.sh" > log 2>&1; then ok "$same"; else not_ok "$same"; fi
fi

# Where processes race for the last of a tenant's limit and die over it.
holds "I1, I2, I4: charge, uncharge, retire, reap, reconcile and prove, two killed" \
    "-DLIMIT_TENANT=1 -DPROVERS=2 -DKILLS=2"
holds "I1, I2, I4: three processes prove at once, one killed" "-DLIMIT_TENANT=1 -DPROVERS=3"
holds "I1, I2, I4: two resources, roll-back and shrinking" \
    "-DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=1"
holds "I1, I2, I4: slots claimed, and claimed again" "-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"
holds "I1, I2, I4: the sum over two devices, of which one appears" \
    "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=1"
holds "I1, I2, I4: a forked child shares the slot, limit per tenant" \
    "-DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2" tcc
holds "I1, I2, I4: a forked child shares the slot, limit per process" \
    "-DFORK -DS=2 -DLIMIT_PROCESS=1" tcc
holds "I1, I2, I4: a forked child shares the slot, limit per process over two devices" \
    "-DFORK -DS=2 -DD=2 -DLIMIT_PROCESS_TOTAL=1 -DPROVERS=2" tcc
holds "I1 to I4: one stopped for ever and one killed, the others end" \
    "-DLIVENESS -DSTOPS=1 -DLIMIT_TENANT=1 -DPROVERS=1"
holds "I1 to I4: the same with a forked child" "-DLIVENESS -DSTOPS=1 -DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"
holds "I1 to I4: the same where a prover asks for a pause" "-DLIVENESS -DSTOPS=1 -DPAUSE -DLIMIT_TENANT=1 -DPROVERS=1"

if [ "$long" ]; then
    holds "long: two prove twice, two killed" "-DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2 -DKILLS=2"
    holds "long: three prove twice, two killed" "-DLIMIT_TENANT=1 -DPROOF_ROUNDS=2 -DKILLS=2"
    holds "long: four processes" "-DP=4 -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: two resources, two prove" "-DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=2"
    holds "long: three slots to claim" "-DCLAIM -DS=3 -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: two resources where slots are claimed" \
        "-DCLAIM -DS=2 -DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=1"
    holds "long: a process starts in the place of a dead one" "-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=1 -DBIRTHS=1"
    holds "long: the sum over two devices, two prove" "-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
    holds "long: a forked child among four, two killed" "-DFORK -DP=4 -DS=3 -DLIMIT_TENANT=1 -DPROVERS=2 -DKILLS=2"
    holds "long: two provers ask for a pause" "-DPAUSE -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: one stopped for ever, two prove" "-DLIVENESS -DSTOPS=1 -DLIMIT_TENANT=1 -DPROVERS=2"
    holds "long: one stopped for ever where slots are claimed" \
        "-DLIVENESS -DSTOPS=1 -DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2"
fi

# Seen to fail: the search finds what is wrong with each of these.
race="-DLIMIT_TENANT=1 -DPROVERS=2 -DPROOF_ROUNDS=2"
fails MUTANT_SLOT_BEFORE_GATE "I1" "$race"
fails MUTANT_GATE_FIRST_ON_UNCHARGE "I1" "$race"
fails MUTANT_NO_IN_FLIGHT "I1" "$race"
fails MUTANT_NO_ROLL_BACK "I2" "-DR=2 -DLIMIT_TENANT=2 -DLIMIT_TENANT_LAST=1 -DPROVERS=1"
fails MUTANT_ONE_LOOK "I4" "$race"
fails MUTANT_NO_TAG "I1" "-DLIMIT_TENANT=1 -DPROVERS=2 -DLEAKED -DNO_JUDGE -DKILLS=0" -DREVERSE
[ ! "$long" ] || fails MUTANT_SHORT_TAG "I1" "$race -DLEAKED -DNO_JUDGE"
fails MUTANT_NO_CORRECT "I2" "$race"
fails MUTANT_DENY_UNPROVED "I4" "$race"
fails MUTANT_DEAD_COUNTED "I4" "$race"
fails MUTANT_ONE_BYTE "I4" "$race"
claim="-DCLAIM -DS=2 -DLIMIT_TENANT=1 -DPROVERS=2 -DKILLS=0"
fails MUTANT_CLAIM_UNCHECKED "I2" "$claim"
fails MUTANT_CLAIMS_UNCOUNTED "I4" "$claim -DNO_JUDGE"
fails MUTANT_CLAIM_AS_OWNER "I4" "$claim -DNO_JUDGE"
fails MUTANT_FREE_BEFORE_EMPTY "I1" "$claim -DNO_JUDGE"
fails MUTANT_REAP_WITHOUT_LOCK "I1" "$claim -DNO_JUDGE"
fails MUTANT_LOCK_BY_DESCRIPTOR "I1 I4" "$claim -DNO_JUDGE"
two="-DD=2 -DLIMIT_TENANT_TOTAL=1 -DPROVERS=1 -DKILLS=0"
fails MUTANT_NO_SECOND_LOOK "I1" "$two"
fails MUTANT_GATES_OF_SOME "I1" "$two -DOBJECTS=2 -DNO_JUDGE" -DREVERSE
fails MUTANT_RETIRE_UNDER_CHILD "I1" "-DFORK -DS=2 -DLIMIT_TENANT=1 -DPROVERS=1 -DKILLS=0 -DNO_JUDGE"
stop="-DLIVENESS -DSTOPS=1 -DLIMIT_TENANT=1 -DPROVERS=2"
fails MUTANT_WAIT_FOR_LOCK "I3" "$stop"
fails MUTANT_WAIT_FOR_QUIET "I3" "$stop"
fails MUTANT_HOLD_BACK_FOR_EVER "I3" "$stop -DPAUSE"
# And it does get to where these claims mean something.
fails WITNESS_PROVED "WITNESS" "$race"
fails WITNESS_CORRECTED "WITNESS" "$race"
fails WITNESS_TAKEN_OVER "WITNESS" "$race -DKILLS=2"

# The sum over tenants that share no memory.
model=shares.pml
holds "I1: shares of three children, two charge, stopped anywhere, the mover killed once" ""
holds "I1, I4: one of them has a guarantee" "-DOWNER"
holds "I3: nobody backs out for ever while shares are moved" "-DOWNER -DLIVENESS"
[ ! "$long" ] || holds "long: more moves and deaths" "-DMOVES=3 -DKILLS=2"
[ ! "$long" ] || holds "long: more moves and deaths, one has a guarantee" "-DOWNER -DMOVES=3 -DKILLS=2"
for mutant in LIMIT_BEFORE_GENERATION COMPARE_BEFORE_GATE NO_COMPARE RAISE_FIRST READ_FIRST READ_BEFORE_BUMP \
    NO_BUMP_AT_START; do
    fails MUTANT_$mutant I1 ""
done
fails MUTANT_LEND_GUARANTEE I4 "-DOWNER"
fails MUTANT_NO_BACK_OUT I4 "-DOWNER"
fails MUTANT_SEEN_ONCE I3 "-DOWNER -DLIVENESS"
fails WITNESS_HANDED_ON WITNESS ""

# The word of a rate.
model=pace.pml
holds "I1, I4: three take from a rate, one is killed while it waits" ""
holds "I4: a forged word denies nothing to one caller" "-DFORGER -DP=1 -DCALLS=3"
fails MUTANT_NO_COMPARE I1 ""
fails MUTANT_PAID_AFTERWARDS I1 ""
fails MUTANT_IDLE_COUNTS I1 ""
fails MUTANT_NO_CLAMP I4 "-DFORGER -DP=1"
fails WITNESS_WAITED WITNESS ""

# One limit over nodes that share no memory, through etcd.
model=cluster.pml
holds "I1, I2, I4: ceilings of two nodes, a write that nobody waits for, another leader" "-DWRITES=3 -DLEADERS=1"
holds "I1, I2, I4: a node boots" "-DWRITES=2 -DLEADERS=1 -DBOOTS=1"
holds "I1, I2, I4: the limit is lowered" "-DWRITES=2 -DLOWERED=1"
holds "I1, I2, I4: etcd is restored from a backup" "-DWRITES=2 -DRESTORES=1 -DLEADERS=0"
holds "I1, I2, I4: a node is forgotten that may live" "-DWRITES=2 -DFORGETS=1 -DLEADERS=0"
holds "I1, I2, I4: the limit is removed and added again" "-DWRITES=2 -DADDED_AGAIN=1 -DLEADERS=0"
[ ! "$long" ] || holds "long: removed and added again, three writes" "-DWRITES=3 -DADDED_AGAIN=1 -DLEADERS=0"
fails MUTANT_HELD_FALLS_UNACKNOWLEDGED I1 "-DWRITES=3 -DLEADERS=0" -DBFS
fails MUTANT_RAISE_BEFORE_ACKNOWLEDGEMENT "I1 I2" "-DWRITES=3 -DLEADERS=0" -DBFS
fails MUTANT_REPORT_COUNTED "I1 I2" "-DWRITES=3 -DLEADERS=0" -DBFS
fails MUTANT_NO_FENCE "I1 I2" "-DMUTANT_NO_TURN -DWRITES=2" -DBFS
fails MUTANT_NO_TURN "I1 I2" "-DWRITES=2 -DLEADERS=0" -DBFS
fails MUTANT_ACKNOWLEDGED_BEFORE_LOWERED I1 "-DWRITES=3 -DLEADERS=0" -DBFS
fails MUTANT_OTHER_BOOT_TAKEN I1 "-DBOOTS=1 -DWRITES=2 -DLEADERS=0" -DBFS
fails MUTANT_POOL_ADDED_AGAIN "I1 I2" "-DADDED_AGAIN=1 -DWRITES=2 -DLEADERS=0" -DBFS
fails MUTANT_CLONE_ADMITTED "I1 I2" "-DCLONES=1 -DWRITES=3 -DLEADERS=0" -DBFS
fails WITNESS_GIVEN_BACK WITNESS "-DWRITES=2"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
