// The ledger of shm/ledger.hpp as a Promela model: can I1 to I4 be broken by any order of steps,
// any kill and any stop? test/model/run.sh asks spin, exhaustively, for each configuration.
//
// Modelled under the code's own names: claim, charge of several resources with roll-back, release
// of all or a part, retire, reap, reconcile (observe, correct), the proved denial, limits per
// process, per tenant and for sums over devices, devices that appear, and the kernel's lock on each
// slot, which goes when the last process that has it ends.
//
// Each line of `steps` is one access to shared memory or one system call, with what the process then
// does by itself. In place of any of them a process may be killed, or stopped for ever. (Stopped for
// a while is what the search does to everyone.) Where nothing is lost by it, steps are fewer than in
// the code, which makes the search shorter:
//   - A compare-and-swap loop is one step, since rounds that fail have no effect. That they are few
//     is not shown here: each means that somebody else got something done.
//   - An observer that meets an operation in flight stops looking. The code looks on and gives up.
//   - What nobody but a slot's owner writes is not read in steps of the owner's own (but with FORK).
//   - What never changes in a configuration is not read: the number of slots and who has which
//     (only with CLAIM), the number of devices (only with D > 1), limits that are unlimited.
//
// Not modelled: weak memory (the code's operations are sequentially consistent), hostile bytes (I5),
// peaks, events and identities (for people), lock files that cannot be opened, and time:
// `proof_wait_ns` is at most PROOF_ROUNDS rounds. `pause`, which only ever delays a process for a
// bounded time, is left to the search, which delays every process anyhow.
//
// A configuration is made with -D; the defaults are below. MUTANT_* are faults put in on purpose,
// each of which spin must find. With MUTANT it is asked for I1 to I4 alone, not for the stronger
// BOOKS on which they rest.

#ifndef P
#define P 3  // processes, not counting the judge
#endif
#ifndef S
#define S P  // slots
#endif
#ifndef PROVERS
#define PROVERS P  // so many of them prove a denial; the others give up, as if denied unproved
#endif
#ifndef D
#define D 1  // devices; process p uses device p % D
#endif
#ifndef R
#define R 1  // resources of which each object costs one
#endif
#ifndef KILLS
#define KILLS 1  // processes killed in the middle of anything. How many exit is not bounded
#endif
#ifndef STOPS
#define STOPS 0  // processes stopped for ever
#endif
#ifndef BIRTHS
#define BIRTHS 0  // processes that start in the place of dead ones
#endif
#ifndef OBJECTS
#define OBJECTS 1  // that a process makes, one after the other
#endif
#ifndef PROOF_ROUNDS
#define PROOF_ROUNDS 1
#endif
#define UNLIMITED 255
#ifndef LIMIT_PROCESS
#define LIMIT_PROCESS UNLIMITED
#endif
#ifndef LIMIT_PROCESS_TOTAL
#define LIMIT_PROCESS_TOTAL UNLIMITED
#endif
#ifndef LIMIT_TENANT
#define LIMIT_TENANT UNLIMITED  // of the first resource
#endif
#ifndef LIMIT_TENANT_LAST
#define LIMIT_TENANT_LAST LIMIT_TENANT  // of the last one
#endif
#ifndef LIMIT_TENANT_TOTAL
#define LIMIT_TENANT_TOTAL UNLIMITED
#endif
// CLAIM: processes claim their slots; otherwise each starts with one.
// FORK: process 1 is a forked child of process 0 and shares its slot.
// LIVENESS: with the claim that everyone ends.

#ifdef CLAIM
#define CLAIMS 1
#else
#define CLAIMS 0
#endif
#ifdef FORK
#define FORKED 1
#else
#define FORKED 0
#endif

#define CELL(d, r) ((d) * R + (r))
#define CELLS (D * R)
#define USAGE(slot, cell) usage[(slot) * CELLS + (cell)]
#define DEVICE(p) ((p) % D)
#define BIT(n) (1 << (n))
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

// A gate's word and an ops word as in shm/layout.hpp, with fewer bits.
#define TAG_SHIFT 5
#define AMOUNT_MASK 31
#define AMOUNT(word) ((word) & AMOUNT_MASK)
#define TAG(word) ((word) >> TAG_SHIFT)
#ifdef MUTANT_SHORT_TAG
#define TAG_MASK 1
#else
#define TAG_MASK 7
#endif
#define OPS_BEGIN 1
#define OPS_END 7
#define IN_FLIGHT_MASK 7

// Scopes, in the order in which `fits` looks at them.
#define NONE 0
#define PROCESS 1
#define TENANT 2
#define PROCESS_TOTAL 3
#define TENANT_TOTAL 4
#define LIMIT_TENANT_OF(r) ((r) == R - 1 -> LIMIT_TENANT_LAST : LIMIT_TENANT)
#define LIMIT_OF(scope, r) ((scope) == PROCESS -> LIMIT_PROCESS : ((scope) == PROCESS_TOTAL -> LIMIT_PROCESS_TOTAL : \
                            ((scope) == TENANT -> LIMIT_TENANT_OF(r) : LIMIT_TENANT_TOTAL)))
#define EXCEEDS(used, limit) ((limit) != UNLIMITED && (used) + 1 > (limit))

// The segment.
byte gates[CELLS];
byte ops[S];
bool live[S];
byte usage[S * CELLS];
byte slots_used;
byte devices_used = 1;

byte claims;

// The kernel: per slot, which processes have its lock. Only a fork makes it several. REAPER: it is
// the lock of both bytes, an owner's is that of the first.
byte lock[S];
#define REAPER 128

// What only this model knows. The judge is process P, which comes when the others rest.
byte slot_of[P + 1];
byte owners[S];          // living processes that own the slot
byte held[P + 1];        // the resources of the verbs object that a process has, one bit each
byte working_in[P + 1];  // 1 + the slot in which a process has an operation in flight; 0 for none
byte kills, stops, births, resting;
bool judged;
hidden byte h_p, h_s, h_c, h_r, h_d, h_sum, h_all, h_own;  // of one step; not part of a state

// Where a process is: before the step of that name.
mtype = {
    born, appear, claim_look, claim_lock, claim_check, claim_count, claim_used, claim_live, claim_own,
    claim_unlock,
    fits_process, fits_tenant, fits_process_total, fits_tenant_total,
    begin, raise_gate, raise_slot, lower_slot, lower_gate, end,
    own_ops, own_used, own_ops_again, alive_lock, alive_state, alive_claims,
    reap_look, reap_lock, reap_check, empty_begin, empty_load, empty_read, empty_end, empty_free, reap_unlock,
    count_claims, count_devices, count_slots, first_look, look_live, look_used, read_gates, second_look, recount_slots,
    recount_devices, count_again, correct,
    choose, let_go, retire_lock, dead, stopped, finished
};

// What a process does, and for what.
#define CHARGE 0
#define RELEASE 1
#define PROVE 2
#define RETIRE 3
#define JOIN 4
#define JOIN_AGAIN 5
#define JUDGE 6

#define LOCALS \
    mtype pc; \
    bool has_slot, already, emptying, quiet, really; \
    byte doing, denied, k, i, j, t, c, n, taken, amount, word, sum, looks, slots, devices, freed, round, made; \
    byte holders, claims_seen; \
    byte snapshot_used[D]; \
    byte snapshot_gate[D]

// ---- the invariants

// h_sum = what `slot` (S: every slot) uses on device `d` (D: on all devices). `alive`: if it has a
// living owner.
inline sum_usage(slot, d, r, alive) {
    h_sum = 0;
    h_s = 0;
    do
    :: h_s < S ->
        h_d = 0;
        do
        :: h_d < D ->
            h_c = ((slot) == S || (slot) == h_s) && ((d) == D || (d) == h_d) && (!(alive) || owners[h_s] > 0);
            h_sum = h_sum + (h_c -> USAGE(h_s, CELL(h_d, r)) : 0);
            h_d++
        :: else -> break
        od;
        h_s++
    :: else -> break
    od;
    h_s = 0
}

// h_all = how many living processes have an operation in flight in `slot` (S: in any).
inline count_working(slot) {
    h_all = 0;
    h_p = 0;
    do
    :: h_p < P + 1 ->
        h_all = h_all + (working_in[h_p] != 0 && ((slot) == S || working_in[h_p] == (slot) + 1));
        h_p++
    :: else -> break
    od;
    h_p = 0
}

// BOOKS: no gate is ever below the sum of the slots. Part of each step that may break it.
inline check_books(cell) {
#ifndef MUTANT
    h_sum = 0;
    h_s = 0;
    do
    :: h_s < S -> h_sum = h_sum + USAGE(h_s, cell); h_s++
    :: else -> break
    od;
    assert(AMOUNT(gates[cell]) >= h_sum);
#endif
    h_s = 0
}

// I1: what the living hold is within every limit. Checked where it can break: when something is
// granted.
inline check_limits() {
    h_r = 0;
    do
    :: h_r < R ->
        h_d = 0;
        h_sum = 0;  // over devices: of all processes,
        h_s = 0;    // and of those with this slot
        do
        :: h_d < D ->
            h_all = 0;
            h_own = 0;
            h_p = 0;
            do
            :: h_p < P ->
                h_c = DEVICE(h_p) == h_d && (held[h_p] & BIT(h_r)) != 0;
                h_all = h_all + h_c;
                h_own = h_own + (h_c && slot_of[h_p] == slot_of[id]);
                h_p++
            :: else -> break
            od;
            assert(h_all <= LIMIT_TENANT_OF(h_r));
            assert(h_own <= LIMIT_PROCESS);
            h_sum = h_sum + h_all;
            h_s = h_s + h_own;
            h_d++
        :: else -> break
        od;
        assert(h_sum <= LIMIT_TENANT_TOTAL);
        assert(h_s <= LIMIT_PROCESS_TOTAL);
        h_r++
    :: else -> break
    od;
    h_r = 0
}

// I2, at rest after a reap: the gate, the slots and what the living hold are the same. (Who is stopped
// between destroying an object and releasing it keeps the charge; who dies there leaves it to the
// forked child that keeps the slot.)
inline check_truth(d, r) {
    h_all = 0;
    h_p = 0;
    do
    :: h_p < P -> h_all = h_all + (DEVICE(h_p) == (d) && (held[h_p] & BIT(r)) != 0); h_p++
    :: else -> break
    od;
    sum_usage(S, d, r, false);
    assert(h_sum == h_all || ((FORKED || stops > 0) && h_sum > h_all));
    assert(AMOUNT(gates[CELL(d, r)]) == h_sum)
}

// I4: was the limit full at this instant, of what the living use, with nothing in flight that counts?
inline look_really() {
    if
    :: denied == PROCESS -> count_working(slot_of[id]); sum_usage(slot_of[id], DEVICE(id), k, true)
    :: denied == PROCESS_TOTAL -> count_working(slot_of[id]); sum_usage(slot_of[id], D, k, true)
    :: denied == TENANT -> count_working(S); sum_usage(S, DEVICE(id), k, true)
    :: else -> count_working(S); sum_usage(S, D, k, true)
    fi;
    really = h_all == 0 && EXCEEDS(h_sum, LIMIT_OF(denied, k))
}

// ---- between the steps

#ifdef MUTANT_SLOT_BEFORE_GATE
#define FIRST_RAISE raise_slot
#else
#define FIRST_RAISE raise_gate
#endif
#ifdef MUTANT_GATE_FIRST_ON_RELEASE
#define FIRST_LOWER lower_gate
#else
#define FIRST_LOWER lower_slot
#endif

// A process gives up its share of its slot. The kernel destroys verbs objects when the last process
// with the device's file is gone, which is when the last owner is.
inline leave_slot() {
    h_s = slot_of[id];
    owners[h_s]--;
    h_p = 0;
    do
    :: h_p < P -> held[h_p] = (owners[h_s] == 0 && slot_of[h_p] == h_s -> 0 : held[h_p]); h_p++
    :: else -> break
    od;
    has_slot = false
}

inline forget_snapshot() {
    h_d = 0;
    do
    :: h_d < D ->
        snapshot_used[h_d] = 0;
#ifdef MUTANT_DEVICES_COUNTED_TWICE
        snapshot_gate[h_d] = 1;  // what happens to be on the stack
#else
        snapshot_gate[h_d] = 0;
#endif
        h_d++
    :: else -> break
    od;
    quiet = false;
    devices = 0;
    slots = 0;
    looks = 0;
    holders = 0;
    claims_seen = 0;
    j = 0;
    n = 0
}

inline forget() {
    already = false; emptying = false; really = false;
    doing = CHARGE; denied = NONE; k = 0; i = 0; t = 0; c = 0;
    taken = 0; amount = 0; word = 0; sum = 0; freed = 0; round = 0; made = 0;
    forget_snapshot()
}

inline end_process() {
    h_s = 0;
    do
    :: h_s < S ->
        if :: lock[h_s] & BIT(id) -> lock[h_s] = lock[h_s] & ~(BIT(id) | REAPER) :: else -> skip fi;
        h_s++
    :: else -> break
    od;
    if :: has_slot -> leave_slot() :: else -> skip fi;
    working_in[id] = 0;
    forget();
    pc = dead
}

// The next limit to look at after `scope`, of resource k or the ones after it.
inline go_on_fitting(scope) {
    sum = 0;
    j = 0;
    h_s = (scope) + 1;
    do
    :: h_s == PROCESS && LIMIT_PROCESS != UNLIMITED -> pc = fits_process; break
    :: h_s == TENANT && !already && LIMIT_TENANT_OF(k) != UNLIMITED -> pc = fits_tenant; break
    :: h_s == PROCESS_TOTAL && LIMIT_PROCESS_TOTAL != UNLIMITED -> pc = fits_process_total; break
    :: h_s == TENANT_TOTAL && LIMIT_TENANT_TOTAL != UNLIMITED -> pc = fits_tenant_total; break
    :: h_s > TENANT_TOTAL ->  // resource k fits
        k++;
        if
        :: already -> already = false; pc = (k < R -> FIRST_RAISE : end); break
        :: !already && k == R -> k = 0; pc = begin; break
        :: else -> h_s = PROCESS
        fi
    :: else -> h_s++
    od;
    h_s = 0
}

inline try_charge() {
    doing = CHARGE;
    denied = NONE;
    k = 0;
    already = false;
    go_on_fitting(NONE)
}

// Resource k was denied for `scope`; the first `raised` resources are to be rolled back.
inline deny(scope, raised) {
    denied = scope;
    already = false;
    sum = 0;
    j = 0;
    i = raised;
    roll_back()
}

inline roll_back() {
    if
    :: i > 0 -> i--; pc = FIRST_LOWER
    :: else -> pc = end
    fi
}

inline release_next() {
    do
    :: i < R && (amount & BIT(i)) == 0 -> i++
    :: else -> break
    od;
    pc = (i < R -> FIRST_LOWER : end)
}

// From slot t on, the next one to be reaped; when there is none, whatever the reaping was for.
#define MINE(slot) (has_slot && !FORKED && (slot) == slot_of[id])

inline reap_from() {
    t = t + (has_slot && t == slot_of[id]);
    if
    :: t < S -> pc = reap_look
    :: else ->
        t = 0;
        if
        :: doing == PROVE -> try_charge()
        :: doing == JOIN -> pc = claim_look
        :: doing == JOIN_AGAIN && freed > 0 -> pc = claim_look
        :: doing == JOIN_AGAIN && freed == 0 -> pc = finished
        :: else -> start_observe()
        fi;
        freed = 0
    fi
}

inline reap() {
    t = 0;
    freed = 0;
    reap_from()
}

inline start_prove() {
    doing = PROVE;
#ifdef MUTANT_DENY_UNPROVED
    look_really();
    assert(really);
#endif
#ifdef MUTANT_WAIT_FOR_QUIET
    round = 0;
#else
    round++;
#endif
    if
    :: denied == PROCESS || denied == PROCESS_TOTAL -> pc = own_ops
    :: else -> start_observe()
    fi
}

inline start_observe() {
    quiet = true;
    devices = 1;
    slots = S;
    h_d = 0;
    do
    :: h_d < D -> snapshot_used[h_d] = (has_slot && !FORKED -> USAGE(slot_of[id], CELL(h_d, k)) : 0); h_d++
    :: else -> break
    od;
    n = MINE(0);
    pc = (D > 1 -> count_devices : (CLAIMS -> count_slots : first_look))
}

inline look_at_next_slot() {
    j = 0;
    n = n + 1 + MINE(n + 1);
    if
    :: n < slots -> pc = first_look
    :: else -> n = 0; pc = read_gates
    fi
}

inline no_view() {
    assert(doing != JUDGE);  // I2: nothing can be in flight then
    not_proved()
}

inline not_proved() {
    forget_snapshot();
    really = false;
    reap()
}

// I4: what is called proved was so.
inline proved() {
    assert(really);
    forget_snapshot();
    really = false;
    denied = NONE;
    go_on()
}

// The next slot, from n on, that the view says has a part in it and that may be dead.
inline alive_from() {
    do
    :: n < S && ((holders & BIT(n)) == 0 || MINE(n)) -> n++
    :: else -> break
    od;
    if
    :: n < S -> pc = alive_lock
    :: n >= S && CLAIMS -> n = 0; pc = alive_claims
    :: else -> proved()
    fi
}

inline after_second_look() {
    if
    :: looks != 0 -> no_view()
    :: else -> after_looks()
    fi
}

inline after_looks() {
    looks = 0;
    i = (doing == PROVE && denied == TENANT -> DEVICE(id) : 0);
    if
    :: CLAIMS -> pc = recount_slots
    :: !CLAIMS && D > 1 -> pc = recount_devices
    :: else -> correct_from()
    fi
}

inline looked() {
#ifdef MUTANT_ONE_LOOK
    after_looks()
#else
    n = MINE(0);
    if
    :: n < slots -> pc = second_look
    :: else -> n = 0; after_looks()
    fi
#endif
}

#ifdef MUTANT_NO_TAG
#define SAME_TAG(word, seen) true
#define NEXT_TAG(seen) TAG(seen)
#else
#define SAME_TAG(word, seen) (TAG(word) == TAG(seen))
#define NEXT_TAG(seen) ((TAG(seen) + 1) & TAG_MASK)
#endif
#ifdef MUTANT_NO_CORRECT
#define LEAK(d) 0
#else
#define LEAK(d) ((AMOUNT(snapshot_gate[d]) - snapshot_used[d]) & AMOUNT_MASK)
#endif
#define CORRECTED(word, d) (((AMOUNT(word) - LEAK(d)) & AMOUNT_MASK) | (NEXT_TAG(snapshot_gate[d]) << TAG_SHIFT))

#ifdef MUTANT_DEVICES_COUNTED_TWICE
#define DEVICES_TO_CORRECT devices_used
#else
#define DEVICES_TO_CORRECT devices
#endif

// Device i is next to be corrected, then those after it that count.
inline correct_from() {
    h_all = (doing == PROVE && denied == TENANT -> DEVICE(id) + 1 : DEVICES_TO_CORRECT);
    do
    :: quiet && i < h_all && LEAK(i) == 0 -> sum = sum + snapshot_used[i]; i++
    :: else -> break
    od;
    if
    :: quiet && i < h_all -> pc = correct
    :: else -> i = 0; use_view()
    fi
}

inline use_view() {
    if
    :: doing == JUDGE ->
        assert(quiet);
        check_truth(0, k);
        if :: D > 1 -> check_truth(D - 1, k) :: else -> skip fi;
        forget_snapshot();
        sum = 0;
        k++;
        if
        :: k < R -> start_observe()
        :: else -> pc = finished
        fi
    :: doing == PROVE && quiet && EXCEEDS(sum, LIMIT_OF(denied, k)) ->
        sum = 0;
#ifdef MUTANT_DEAD_COUNTED
        proved()
#else
        n = 0;
        alive_from()
#endif
    :: else ->
        sum = 0;
        not_proved()
    fi
}

inline no_charge() {
    if
    :: id < P - PROVERS || round == PROOF_ROUNDS -> denied = NONE; go_on()  // denied without a proof
    :: else -> start_prove()
    fi
}

// After a charge or a release.
inline go_on() {
    i = 0;
    k = 0;
    round = 0;
    amount = 0;
    if
    :: held[id] != 0 -> pc = choose
    :: held[id] == 0 && made < OBJECTS -> made++; try_charge()
    :: else -> pc = finished
    fi
}

// ---- the steps

#define AT(place) :: d_step { pc == place ->
#define THEN(place) pc = place }
#define X (emptying -> t : slot_of[id])                       // lower: which slot,
#define Y (emptying -> c : CELL(DEVICE(id), i))               // which resource of which device,
#define MOST (emptying -> amount : 1)                         // how much of it

#ifdef MUTANT_NO_IN_FLIGHT
#define OPS_ADD(slot, n) skip
#else
#define OPS_ADD(slot, n) ops[slot] = ops[slot] + n
#endif
#ifdef MUTANT_FREE_BEFORE_EMPTY
#define FIRST_EMPTY empty_free
#define AFTER_FREE empty_begin
#define LAST_EMPTY AFTER_EMPTY
#else
#define FIRST_EMPTY empty_begin
#define AFTER_FREE AFTER_EMPTY
#define LAST_EMPTY empty_free
#endif
#ifdef MUTANT_RETIRE_UNDER_CHILD
#define AFTER_EMPTY (doing == RETIRE -> let_go : reap_unlock)
#else
#define AFTER_EMPTY reap_unlock
#endif
#ifdef MUTANT_CLAIM_AS_OWNER
#define CLAIMS_AS 0
#else
#define CLAIMS_AS REAPER
#endif
#ifdef MUTANT_ONE_BYTE
#define IS_OWNERS(word) ((word) != 0)
#else
#define IS_OWNERS(word) ((word) != 0 && ((word) & REAPER) == 0)
#endif
#ifdef MUTANT_WAIT_FOR_LOCK
#define WAIT_FOR_REAPER || live[t] && lock[t] != 0 && owners[t] == 0
#else
#define WAIT_FOR_REAPER
#endif

inline fitted(scope) {
    if
    :: !h_c -> go_on_fitting(scope)
    :: h_c && already -> deny(scope, k + 1)
    :: else -> denied = scope; sum = 0; j = 0; no_charge()
    fi
}

inline claim_next() {
    n++;
    if
    :: n < S -> pc = claim_look
    :: n == S && doing == JOIN -> n = 0; doing = JOIN_AGAIN; reap()
    :: else -> pc = finished
    fi
}

inline lowered() {
    taken = 0;
    if
    :: emptying -> c++; amount = 0; pc = (c < CELLS -> empty_load : empty_read)
    :: !emptying && doing == RELEASE -> i++; release_next()
    :: else -> roll_back()
    fi
}

inline steps() {
    do
    // -- ledger.cpp: claim
    AT(born)
        forget_snapshot();
        if
        :: CLAIMS -> doing = JOIN; reap()
        :: else -> has_slot = true; pc = appear
        fi }
    AT(claim_look)
        if :: live[n] -> claim_next() :: else -> pc = claim_lock fi }
    AT(claim_lock)
        if :: lock[n] == 0 -> lock[n] = BIT(id) | CLAIMS_AS; pc = claim_check :: else -> claim_next() fi }
#ifdef MUTANT_CLAIM_UNCHECKED
    AT(claim_check) THEN(claim_count)
#else
    AT(claim_check) pc = (live[n] -> claim_unlock : claim_count) }
#endif
    AT(claim_count) claims++; THEN(claim_used)
    AT(claim_unlock) lock[n] = 0; claim_next() }
    AT(claim_used) slots_used = MAX(slots_used, n + 1); THEN(claim_live)
    AT(claim_live)
        live[n] = true;
        slot_of[id] = n;
        owners[n]++;
        has_slot = true;
        THEN(claim_own)
    AT(claim_own) lock[n] = BIT(id); n = 0; THEN(appear)
    AT(appear)  // device_index
        devices_used = MAX(devices_used, DEVICE(id) + 1);
        go_on() }

    // -- ledger_charge.cpp: fits
    AT(fits_process)
        h_c = EXCEEDS(USAGE(slot_of[id], CELL(DEVICE(id), k)) - already, LIMIT_PROCESS);
        fitted(PROCESS) }
    AT(fits_tenant)
        h_c = EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT_OF(k));
        fitted(TENANT) }
    AT(fits_process_total && j < devices_used)
        sum = sum + USAGE(slot_of[id], CELL(j, k));
        j++ }
    AT(fits_process_total && j >= devices_used)
        h_c = EXCEEDS(sum - already, LIMIT_PROCESS_TOTAL);
        fitted(PROCESS_TOTAL) }
    AT(fits_tenant_total && j < devices_used)
        sum = sum + AMOUNT(gates[CELL(j, k)]);
        j++ }
    AT(fits_tenant_total && j >= devices_used)
        h_c = EXCEEDS(sum - already, LIMIT_TENANT_TOTAL);
        fitted(TENANT_TOTAL) }

    // -- ledger_charge.cpp: InFlight, raise, lower
    AT(begin)
        OPS_ADD(slot_of[id], OPS_BEGIN);
        working_in[id] = slot_of[id] + 1;
        if
        :: doing == CHARGE -> pc = FIRST_RAISE
        :: else -> release_next()
        fi }
    AT(raise_gate)
        if
        :: EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT_OF(k)) ->
#ifdef MUTANT_SLOT_BEFORE_GATE
            deny(TENANT, k + 1)
#else
            deny(TENANT, k)
#endif
        :: else ->
            gates[CELL(DEVICE(id), k)] = gates[CELL(DEVICE(id), k)] + 1;
#ifdef MUTANT_SLOT_BEFORE_GATE
            already = true;
            go_on_fitting(NONE)
#else
            pc = raise_slot
#endif
        fi }
    AT(raise_slot)
        USAGE(slot_of[id], CELL(DEVICE(id), k)) = USAGE(slot_of[id], CELL(DEVICE(id), k)) + 1;
        check_books(CELL(DEVICE(id), k));
#ifdef MUTANT_SLOT_BEFORE_GATE
        pc = raise_gate
#else
        already = true;
#ifdef MUTANT_NO_SECOND_LOOK
        go_on_fitting(TENANT_TOTAL)
#else
        go_on_fitting(NONE)
#endif
#endif
        }
    AT(lower_slot)
#ifdef MUTANT_GATE_FIRST_ON_RELEASE
        USAGE(X, Y) = USAGE(X, Y) - MIN(USAGE(X, Y), MOST);
        lowered()
#else
        taken = MIN(USAGE(X, Y), MOST);
        USAGE(X, Y) = USAGE(X, Y) - taken;
        pc = lower_gate
#endif
        }
    AT(lower_gate)
#ifdef MUTANT_GATE_FIRST_ON_RELEASE
        gates[Y] = gates[Y] - MIN(USAGE(X, Y), MOST);
        pc = lower_slot
#else
        gates[Y] = gates[Y] - taken;
        h_own = Y;
        check_books(h_own);
        lowered()
#endif
        }
    AT(end)
        OPS_ADD(slot_of[id], OPS_END);
        working_in[id] = 0;
        i = 0;
        amount = 0;
        if
        :: doing == CHARGE && denied != NONE -> no_charge()
        :: doing == CHARGE && denied == NONE -> held[id] = BIT(R) - 1; check_limits(); go_on()
        :: else -> go_on()
        fi }

    // -- ledger_charge.cpp: prove, for the limits of the process alone
    AT(own_ops)
        looks = ops[slot_of[id]];
        j = (denied == PROCESS -> DEVICE(id) : 0);
        look_really();
        THEN(own_used)
    AT(own_used && (denied == PROCESS || j < devices_used))
        sum = sum + USAGE(slot_of[id], CELL(j, k));
        j++;
        pc = (denied == PROCESS -> own_ops_again : own_used) }
    AT(own_used && denied != PROCESS && j >= devices_used) THEN(own_ops_again)
    AT(own_ops_again)
        h_c = (looks & IN_FLIGHT_MASK) == 0 && ops[slot_of[id]] == looks && EXCEEDS(sum, LIMIT_OF(denied, k));
        sum = 0;
        if :: h_c -> proved() :: else -> not_proved() fi }

    // -- ledger_reap.cpp: reap, empty_slot
    AT(reap_look && CLAIMS)
        if
        :: t < slots_used && live[t] -> pc = reap_lock
        :: else -> t++; reap_from()
        fi }
    AT(reap_look && !CLAIMS && !(live[t] && lock[t] == 0 WAIT_FOR_REAPER)) t++; reap_from() }
    AT(reap_look && !CLAIMS && live[t] && lock[t] == 0) lock[t] = BIT(id) | REAPER; THEN(FIRST_EMPTY)
    AT(reap_lock)
        if
        :: lock[t] == 0 -> lock[t] = BIT(id) | REAPER; pc = reap_check
        :: else -> t++; reap_from()
        fi }
    AT(reap_check) pc = (live[t] -> FIRST_EMPTY : reap_unlock) }
    AT(empty_begin)
        ops[t] = ops[t] + OPS_BEGIN;
        working_in[id] = t + 1;
        emptying = true;
        THEN(empty_load)
    AT(empty_load)
        amount = USAGE(t, c);
        if
        :: amount != 0 -> pc = FIRST_LOWER
        :: else -> c++; pc = (c < CELLS -> empty_load : empty_read)
        fi }
    AT(empty_read) word = ops[t] | IN_FLIGHT_MASK; c = 0; THEN(empty_end)
    AT(empty_end)
        ops[t] = word + 1;
        word = 0;
        working_in[id] = 0;
        emptying = false;
        THEN(LAST_EMPTY)
    AT(empty_free)
        live[t] = false;
        THEN(AFTER_FREE)
    AT(reap_unlock)
        lock[t] = lock[t] & ~(BIT(id) | REAPER);
        if
        :: doing == RETIRE -> t = 0; pc = finished
        :: else -> freed++; t++; reap_from()
        fi }

    // -- ledger_reap.cpp: observe, correct
    AT(count_devices) devices = devices_used; pc = (CLAIMS -> count_slots : first_look) }
    AT(count_slots) slots = slots_used; THEN(count_claims)
    AT(count_claims) claims_seen = claims; n = MINE(0); pc = (n < slots -> first_look : read_gates); n = (n < slots -> n : 0) }
    AT(first_look && (ops[n] & IN_FLIGHT_MASK) != 0) no_view() }
    AT(first_look && (ops[n] & IN_FLIGHT_MASK) == 0) looks = looks + ops[n]; pc = (CLAIMS -> look_live : look_used) }
    AT(look_live)
        if :: live[n] -> pc = look_used :: else -> look_at_next_slot() fi }
    AT(look_used)
        h_c = (CLAIMS || live[n] -> USAGE(n, CELL(j, k)) : 0);
        snapshot_used[j] = snapshot_used[j] + h_c;
        holders = holders | (h_c > 0 && doing == PROVE -> BIT(n) : 0);
        j++;
        if :: j == devices -> look_at_next_slot() :: else -> skip fi }
    AT(read_gates)
        if :: j == 0 && doing == PROVE -> look_really() :: else -> skip fi;
        snapshot_gate[j] = gates[CELL(j, k)];
        j++;
        if :: j == devices -> j = 0; looked() :: else -> skip fi }
    AT(second_look)
        looks = looks - ops[n];
        n = n + 1 + MINE(n + 1);
        if :: n >= slots -> n = 0; after_second_look() :: else -> skip fi }
    AT(recount_slots)
        if
        :: slots_used != slots -> no_view()
        :: else -> if :: D > 1 -> pc = recount_devices :: else -> correct_from() fi
        fi }
    AT(recount_devices)
#ifdef MUTANT_DEVICES_COUNTED_TWICE
        if :: devices_used != devices -> no_view() :: else -> pc = count_again fi }
    AT(count_again) correct_from() }
#else
        if :: devices_used != devices -> no_view() :: else -> correct_from() fi }
#endif
    AT(correct)
        if
        :: SAME_TAG(gates[CELL(i, k)], snapshot_gate[i]) ->
            gates[CELL(i, k)] = CORRECTED(gates[CELL(i, k)], i);
            check_books(CELL(i, k))
        :: else -> skip
        fi;
        sum = sum + snapshot_used[i];
        i++;
        correct_from() }

    // -- ledger_reap.cpp: all_alive
    AT(alive_lock)
        if
        :: !IS_OWNERS(lock[n]) -> not_proved()
        :: IS_OWNERS(lock[n]) && CLAIMS -> pc = alive_state
        :: else -> n++; alive_from()
        fi }
    AT(alive_state)
        if :: live[n] -> n++; alive_from() :: else -> not_proved() fi }
    AT(alive_claims)
#ifdef MUTANT_CLAIMS_UNCOUNTED
        proved() }
#else
        if :: claims == claims_seen -> proved() :: else -> not_proved() fi }
#endif

    // -- what a process with an object does next
    AT(choose) doing = RELEASE; amount = held[id]; held[id] = 0; THEN(begin)
    AT(choose && held[id] == BIT(R) - 1 && R > 1) doing = RELEASE; amount = 1; held[id] = held[id] & ~1; THEN(begin)
    AT(choose) THEN(finished)  // it lives on
    AT(choose) end_process() } // it exits, as programs do, without closing anything
#ifdef MUTANT_RETIRE_UNDER_CHILD
    AT(choose) doing = RETIRE; t = slot_of[id]; THEN(empty_begin)
    AT(let_go) lock[t] = lock[t] & ~BIT(id); leave_slot(); t = 0; THEN(finished)
#else
    AT(choose) doing = RETIRE; t = slot_of[id]; THEN(let_go)
    AT(let_go) lock[t] = lock[t] & ~BIT(id); leave_slot(); THEN(retire_lock)
    AT(retire_lock)
        if
        :: lock[t] == 0 -> lock[t] = BIT(id) | REAPER; pc = reap_check
        :: else -> t = 0; pc = finished
        fi }
#endif

    // -- the end
    :: d_step { id < P && kills < KILLS && pc != born && pc != choose && pc != dead && pc != finished ->
                kills++;
                end_process() }
#ifdef MUTANT_LOCK_BY_DESCRIPTOR
    // The host program closes every descriptor in another thread, and the reaper's lock goes.
    :: d_step { (emptying || pc == empty_begin || pc == empty_free) && lock[t] == (BIT(id) | REAPER) -> lock[t] = 0 }
#endif
    AT(dead && births < BIRTHS) births++; THEN(born)
    AT(dead) THEN(finished)
#if STOPS
    :: d_step { id < P && stops < STOPS && pc != dead && pc != finished -> stops++; resting++; forget(); pc = stopped } -> break
#endif
    :: d_step { pc == finished -> forget(); resting++ } -> break
    od
}

proctype process(byte id) {
    LOCALS;
    pc = born;
    steps()
}

// I2: when all others rest, one reap and one reconcile make the books true. Excused is what a
// stopped process is in the middle of, and what a process that died in an operation left in a slot
// that its child keeps.
proctype judge() {
    LOCALS;
    byte id = P;
    bool excused;
    atomic {
        resting == P;
        do
        :: n < P -> excused = excused || working_in[n] != 0; n++
        :: else -> n = 0; break
        od;
        do
        :: n < S -> excused = excused || (lock[n] != 0 && (owners[n] == 0 || (ops[n] & IN_FLIGHT_MASK) != 0)); n++
        :: else -> n = 0; break
        od;
#if !FORKED && !STOPS
        assert(!excused);
#endif
        if
        :: excused -> skip
        :: else ->
            if :: d_step { doing = JUDGE; reap() } fi;
            steps()
        fi;
        judged = true
    }
}

init {
    atomic {
        h_p = 0;
        do
        :: h_p < P ->
#if !CLAIMS
            slot_of[h_p] = (FORKED && h_p > 0 -> h_p - 1 : h_p);
            live[slot_of[h_p]] = true;
            owners[slot_of[h_p]]++;
            lock[slot_of[h_p]] = lock[slot_of[h_p]] | BIT(h_p);
            slots_used = S;
#endif
            run process(h_p);
            h_p++
        :: else -> break
        od;
#ifdef LEAKED
        gates[0] = 1;
#endif
#ifndef NO_JUDGE
        run judge()
#endif
        h_p = 0
    }
}

#ifdef LIVENESS
// I3, and I2 in the end: all who are not stopped come to their end, whatever the order of steps.
ltl everyone_ends { <> judged }
#endif
