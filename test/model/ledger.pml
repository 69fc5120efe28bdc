// The ledger of shm/ledger.hpp as a Promela model: can I1 to I4 be broken by any order of steps,
// any kill and any stop? test/model/run.sh asks spin, exhaustively, for each configuration.
//
// Modelled step by step, under the code's own names: claim, charge of several resources with
// roll-back, release, retire, reap, reconcile (observe, correct) and the proved denial; limits per
// process, per tenant and for sums over devices; devices that appear; and the kernel's lock on each
// slot, which goes when the last process that has it dies. One STEP is one access to shared memory
// or one system call. A process may be killed, or stopped for ever, in place of any of them; one
// that is stopped for a while is one that the search does not pick for a while.
//
// Not modelled: weak memory (the code's operations are sequentially consistent), hostile bytes (I5),
// peaks, events and identities (for people), lock files that cannot be opened, more than P processes.
// Time: `proof_wait_ns` is at most PROOF_ROUNDS rounds. An observer that meets an operation in flight
// stops looking, where the code looks on and then gives up: it does nothing with what it reads.
// KILLS bounds how many are killed in mid-step; how many exit is not bounded.
//
// A configuration is made with -D; the defaults are below. MUTANT_* are faults put in on purpose,
// and spin must find each; with MUTANT it is asked for the invariants alone, not for the stronger
// BOOKS on which they rest.

#ifndef P
#define P 3  // processes, not counting the judge
#endif
#ifndef S
#define S P  // slots
#endif
#ifndef D
#define D 1  // devices
#endif
#ifndef R
#define R 1  // resources that each object costs, one of each
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef BIRTHS
#define BIRTHS 0  // processes that start in place of dead ones
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
#ifndef LIMIT_TENANT_0  // of the first resource
#define LIMIT_TENANT_0 UNLIMITED
#endif
#ifndef LIMIT_TENANT_1  // of the others
#define LIMIT_TENANT_1 UNLIMITED
#endif
#define LIMIT_TENANT(r) ((r) == 0 -> LIMIT_TENANT_0 : LIMIT_TENANT_1)
#define DEVICE(p) ((p) % D)  // that a process uses
#ifndef LIMIT_TENANT_TOTAL
#define LIMIT_TENANT_TOTAL UNLIMITED
#endif
#ifndef LIMIT_PROCESS_TOTAL
#define LIMIT_PROCESS_TOTAL UNLIMITED
#endif
// CLAIM: processes claim their slots; otherwise each starts with one.
// FORK: process 1 is a forked child of process 0 and shares its slot.

#define CELLS (D * R)
#define CELL(d, r) ((d) * R + (r))
#define USAGE(slot, cell) usage[(slot) * CELLS + (cell)]
#define BIT(n) (1 << (n))
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define EXCEEDS(used, limit) ((limit) != UNLIMITED && (used) + 1 > (limit))

// A gate's word and an ops word as in shm/layout.hpp, with fewer bits.
#define TAG_SHIFT 5
#define AMOUNT_MASK 31
#define AMOUNT(word) ((word) & AMOUNT_MASK)
#ifdef MUTANT_SHORT_TAG
#define TAG_MASK 1
#else
#define TAG_MASK 7
#endif
#define TAG(word) ((word) >> TAG_SHIFT)
#define OPS_BEGIN 1
#define OPS_END 7
#define IN_FLIGHT_MASK 7

// What the segment holds.
byte gates[CELLS];
byte ops[S];
bool live[S];
byte usage[S * CELLS];
byte slots_used;
byte devices_used;

// What the kernel holds: per slot, which processes have its lock. Only a fork makes it several.
byte lock[S];

// What only this model knows. JUDGE is one more process, which comes when the others rest.
#define JUDGE P
byte slot_of[P + 1];
byte held[P];           // resources of the object that the process has, one bit each
byte working_in[P + 1]; // 1 + the slot that the process changes now, 0 for none
bool in_charge[P];
byte was_full[P];       // bit scope * R + r: was full at some instant of this charge
byte owners[S];         // living owners of the slot
byte kills, stops, births, resting;
bool judged;
hidden byte h_p, h_s, h_c, h_r, h_d, h_sum, h_busy, h_used;

#define NONE 0
#define PROCESS 1
#define PROCESS_TOTAL 2
#define TENANT 3
#define TENANT_TOTAL 4
#define FULL_BIT(scope, r) BIT(((scope) - 1) * R + (r))

// What `slot`, or with `all` every slot, uses of a range of devices, at an instant when no living
// process is in an operation on any of them; otherwise 0.
inline quiet_sum(all, slot, r, first_device, end_device) {
    h_sum = 0;
    h_busy = 0;
    h_s = 0;
    do
    :: h_s < P + 1 ->
        h_busy = h_busy + (working_in[h_s] != 0 && (all || working_in[h_s] == (slot) + 1));
        h_s++
    :: else -> break
    od;
    h_s = 0;
    do
    :: h_busy == 0 && h_s < S ->
        if
        :: all || h_s == slot ->
            h_d = first_device;
            do
            :: h_d < (end_device) -> h_sum = h_sum + USAGE(h_s, CELL(h_d, r)); h_d++
            :: else -> break
            od
        :: else
        fi;
        h_s++
    :: else -> break
    od
}

// For I4: notes which limits are really full at this instant, for every charge that is under way.
// Part of each step that changes anything.
inline note_full() {
    h_p = 0;
    do
    :: h_p < P ->
        h_r = 0;
        do
        :: in_charge[h_p] && h_r < R ->
            quiet_sum(false, slot_of[h_p], h_r, DEVICE(h_p), DEVICE(h_p) + 1);
            if :: EXCEEDS(h_sum, LIMIT_PROCESS) -> was_full[h_p] = was_full[h_p] | FULL_BIT(PROCESS, h_r) :: else fi;
            quiet_sum(false, slot_of[h_p], h_r, 0, D);
            if :: EXCEEDS(h_sum, LIMIT_PROCESS_TOTAL) -> was_full[h_p] = was_full[h_p] | FULL_BIT(PROCESS_TOTAL, h_r) :: else fi;
            quiet_sum(true, 0, h_r, DEVICE(h_p), DEVICE(h_p) + 1);
            if :: EXCEEDS(h_sum, LIMIT_TENANT(h_r)) -> was_full[h_p] = was_full[h_p] | FULL_BIT(TENANT, h_r) :: else fi;
            quiet_sum(true, 0, h_r, 0, D);
            if :: EXCEEDS(h_sum, LIMIT_TENANT_TOTAL) -> was_full[h_p] = was_full[h_p] | FULL_BIT(TENANT_TOTAL, h_r) :: else fi;
            h_r++
        :: else -> break
        od;
        h_p++
    :: else -> break
    od;
    h_p = 0  // a d_step must not end with a loop
}

// I1: what the living hold is within every limit. It can only break when something is granted.
inline check_limits(slot) {
    h_r = 0;
    do
    :: h_r < R ->
        h_d = 0;
        h_sum = 0;
        h_used = 0;
        do
        :: h_d < D ->
            h_s = 0;   // of all processes on this device,
            h_c = 0;   // and of those that share the slot
            h_p = 0;
            do
            :: h_p < P ->
                if
                :: DEVICE(h_p) == h_d && (held[h_p] & BIT(h_r)) ->
                    h_s++;
                    h_c = h_c + (slot_of[h_p] == slot)
                :: else
                fi;
                h_p++
            :: else -> break
            od;
            assert(h_s <= LIMIT_TENANT(h_r));
            assert(h_c <= LIMIT_PROCESS);
            h_sum = h_sum + h_s;
            h_used = h_used + h_c;
            h_d++
        :: else -> break
        od;
        assert(h_sum <= LIMIT_TENANT_TOTAL);
        assert(h_used <= LIMIT_PROCESS_TOTAL);
        h_r++
    :: else -> break
    od;
    h_r = 0
}

// BOOKS: no gate is ever below the sum of the slots. Part of each step that changes one of them.
inline check_books() {
#ifndef MUTANT
    h_c = 0;
    do
    :: h_c < CELLS ->
        h_sum = 0;
        h_s = 0;
        do
        :: h_s < S -> h_sum = h_sum + USAGE(h_s, h_c); h_s++
        :: else -> break
        od;
        assert(AMOUNT(gates[h_c]) >= h_sum);
        h_c++
    :: else -> break
    od;
#endif
    note_full()
}

// The kernel ends a process: its locks go, and its verbs objects with them.
inline end_process() {
    h_s = 0;
    do
    :: h_s < S -> lock[h_s] = lock[h_s] & ~BIT(id); h_s++
    :: else -> break
    od;
    if :: has_slot -> owners[slot_of[id]]-- :: else fi;
    has_slot = false;
    held[id] = 0;
    working_in[id] = 0;
    in_charge[id] = false;
    was_full[id] = 0;
    note_full()
}

#if STOPS
#define DIES_HERE d_step { id < P && kills < KILLS -> kills++; end_process() }; goto dead \
               :: d_step { id < P && stops < STOPS -> stops++ }; goto stopped
#else
#define DIES_HERE d_step { id < P && kills < KILLS -> kills++; end_process() }; goto dead
#endif

// One step of a living process, in the place of which it may die.
#define STEP(...) if :: d_step { __VA_ARGS__ } :: DIES_HERE fi

// What only concerns the process itself, or only this model.
#define NOW(...) if :: d_step { __VA_ARGS__ } fi

// What each process has to itself. `id` is its number.
#define LOCALS \
    bool has_slot, is_live, got, quiet, proved, claimed; \
    byte word, used, sum, i, j, k, t, c, n, looks, slots, devices, freed, round, denied, made, amount; \
    byte snapshot_used[D]; \
    byte snapshot_gate[D]

inline forget() {
    is_live = false; got = false; quiet = false; proved = false; claimed = false;
    word = 0; used = 0; sum = 0; i = 0; j = 0; k = 0; t = 0; c = 0; n = 0; looks = 0; slots = 0; devices = 0;
    freed = 0; round = 0; denied = 0; made = 0; amount = 0;
    h_d = 0;
    do
    :: h_d < D -> snapshot_used[h_d] = 0; snapshot_gate[h_d] = 0; h_d++
    :: else -> break
    od;
    h_d = 0
}

// InFlight. What the process knows itself to do goes into working_in whatever the ops word says.
inline begin(slot) {
#ifdef MUTANT_NO_IN_FLIGHT
    STEP(working_in[id] = (slot) + 1)
#else
    STEP(ops[slot] = ops[slot] + OPS_BEGIN; working_in[id] = (slot) + 1)
#endif
}

inline end(slot) {
#ifdef MUTANT_NO_IN_FLIGHT
    STEP(working_in[id] = 0; note_full())
#else
    STEP(ops[slot] = ops[slot] + OPS_END; working_in[id] = 0; note_full())
#endif
}

inline lower_gate(cell, amt) {
    STEP(gates[cell] = gates[cell] - MIN(used, amt); check_books())
}

inline lower_slot(slot, cell, amt) {
    STEP(used = USAGE(slot, cell));
    do
    :: d_step { USAGE(slot, cell) == used -> USAGE(slot, cell) = used - MIN(used, amt); check_books() } -> break
    :: d_step { USAGE(slot, cell) != used -> used = USAGE(slot, cell) }
    :: DIES_HERE
    od
}

inline lower(slot, cell, amt) {
#ifdef MUTANT_GATE_FIRST_ON_RELEASE
    STEP(used = USAGE(slot, cell));
    lower_gate(cell, amt);
#endif
    lower_slot(slot, cell, amt);
#ifndef MUTANT_GATE_FIRST_ON_RELEASE
    lower_gate(cell, amt);
#endif
    used = 0
}

inline gate_total(r) {
    NOW(sum = 0; j = 0);
    do
    :: d_step { j < devices_used -> sum = sum + AMOUNT(gates[CELL(j, r)]); j++ }
    :: d_step { j >= devices_used -> j = 0 } -> break
    :: DIES_HERE
    od
}

inline slot_total(slot, r) {
    NOW(sum = 0; j = 0);
    do
    :: d_step { j < devices_used -> sum = sum + USAGE(slot, CELL(j, r)); j++ }
    :: d_step { j >= devices_used -> j = 0 } -> break
    :: DIES_HERE
    od
}

// The first limit that this charge would exceed, by loads alone; NONE when there is room.
inline find_full() {
    do
    :: k < R && denied == NONE ->
        if
        :: LIMIT_PROCESS != UNLIMITED ->
            STEP(denied = (EXCEEDS(USAGE(slot_of[id], CELL(DEVICE(id), k)), LIMIT_PROCESS) -> PROCESS : denied))
        :: else
        fi;
        if
        :: denied == NONE && LIMIT_TENANT(k) != UNLIMITED ->
            STEP(denied = (EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT(k)) -> TENANT : denied))
        :: else
        fi;
        if
        :: denied == NONE && LIMIT_PROCESS_TOTAL != UNLIMITED ->
            slot_total(slot_of[id], k);
            NOW(denied = (EXCEEDS(sum, LIMIT_PROCESS_TOTAL) -> PROCESS_TOTAL : denied); sum = 0)
        :: else
        fi;
        if
        :: denied == NONE && LIMIT_TENANT_TOTAL != UNLIMITED ->
            gate_total(k);
            NOW(denied = (EXCEEDS(sum, LIMIT_TENANT_TOTAL) -> TENANT_TOTAL : denied); sum = 0)
        :: else
        fi;
        if :: denied == NONE -> k++ :: else fi
    :: else -> break
    od;
    if :: denied == NONE -> k = 0 :: else fi
}

inline raise_gate(cell, r) {
    STEP(word = gates[cell]);
    do
    :: EXCEEDS(AMOUNT(word), LIMIT_TENANT(r)) -> denied = TENANT; break
    :: d_step { !EXCEEDS(AMOUNT(word), LIMIT_TENANT(r)) && gates[cell] == word -> gates[cell] = word + 1; check_books() } -> break
    :: d_step { !EXCEEDS(AMOUNT(word), LIMIT_TENANT(r)) && gates[cell] != word -> word = gates[cell] }
    :: DIES_HERE
    od;
    word = 0
}

inline raise_slot(slot, cell) {
    STEP(denied = (EXCEEDS(USAGE(slot, cell), LIMIT_PROCESS) -> PROCESS : denied);
         USAGE(slot, cell) = USAGE(slot, cell) + 1; check_books())
}

inline raise(slot, cell, r) {
#ifdef MUTANT_SLOT_BEFORE_GATE
    raise_slot(slot, cell);
    if
    :: denied == NONE -> raise_gate(cell, r); if :: denied != NONE -> lower_slot(slot, cell, 1) :: else fi
    :: else -> lower_slot(slot, cell, 1)
    fi;
#else
    raise_gate(cell, r);
    if
    :: denied == NONE ->
        raise_slot(slot, cell);
        if
        :: denied == NONE && LIMIT_PROCESS_TOTAL != UNLIMITED ->
            slot_total(slot, r);
            NOW(denied = (EXCEEDS(sum - 1, LIMIT_PROCESS_TOTAL) -> PROCESS_TOTAL : denied); sum = 0)
        :: else
        fi;
        if
        :: denied == NONE && LIMIT_TENANT_TOTAL != UNLIMITED ->
            gate_total(r);
            NOW(denied = (EXCEEDS(sum - 1, LIMIT_TENANT_TOTAL) -> TENANT_TOTAL : denied); sum = 0)
        :: else
        fi;
        if :: denied != NONE -> lower(slot, cell, 1) :: else fi
    :: else
    fi
#endif
}

// Leaves in `denied` the scope of the denial, and in `k` the resource; NONE when charged.
inline try_charge() {
    NOW(denied = NONE; k = 0);
    find_full();
    if
    :: denied == NONE ->
        begin(slot_of[id]);
        do
        :: k < R && denied == NONE ->
            raise(slot_of[id], CELL(DEVICE(id), k), k);
            if :: denied == NONE -> k++ :: else fi
        :: else -> break
        od;
        i = k;
        do
        :: denied != NONE && i > 0 -> i--; lower(slot_of[id], CELL(DEVICE(id), i), 1)
        :: else -> break
        od;
        i = 0;
        end(slot_of[id]);
        if
        :: denied == NONE -> NOW(k = 0; held[id] = BIT(R) - 1; check_limits(slot_of[id]))
        :: else
        fi
    :: else
    fi
}

// For who has the slot's lock.
inline empty_slot(slot) {
    STEP(ops[slot] = ops[slot] + OPS_BEGIN; working_in[id] = (slot) + 1);
#ifdef MUTANT_FREE_BEFORE_EMPTY
    STEP(live[slot] = false);
#endif
    do
    :: c < CELLS ->
        STEP(amount = USAGE(slot, c));
        if :: amount != 0 -> lower(slot, c, amount); amount = 0 :: else fi;
        c++
    :: else -> c = 0; break
    od;
    STEP(word = ops[slot] | IN_FLIGHT_MASK);
    STEP(ops[slot] = word + 1; word = 0; working_in[id] = 0; note_full());
    STEP(live[slot] = false)
}

inline try_lock(slot) {
    STEP(got = (lock[slot] == 0); if :: got -> lock[slot] = BIT(id) :: else fi)
}

inline unlock(slot) {
    STEP(lock[slot] = lock[slot] & ~BIT(id); got = false)
}

inline reap() {
    NOW(freed = 0; t = 0);
    do
    :: t < slots_used ->
        STEP(is_live = live[t]);
        if
        :: is_live ->
#ifdef MUTANT_WAIT_FOR_LOCK
            do :: !got -> (lock[t] == 0 || owners[t] > 0); if :: owners[t] > 0 -> break :: else try_lock(t) fi :: else -> break od;
#else
            try_lock(t);
#endif
            if
            :: got ->
                STEP(is_live = live[t]);
                if :: is_live -> empty_slot(t); freed++ :: else fi;
                unlock(t)
            :: else
            fi
        :: else
        fi;
        NOW(is_live = false; t++)
    :: else -> t = 0; break
    od
}

// Leaves in `quiet` whether the snapshot is one of slots at rest.
inline observe(r) {
    STEP(devices = devices_used);
    STEP(slots = slots_used);
    NOW(quiet = true; h_d = 0; do :: h_d < D -> snapshot_used[h_d] = 0; h_d++ :: else -> break od; h_d = 0);
    do
    :: n < slots && quiet ->  // first_look
        STEP(looks = looks + ops[n]; quiet = (ops[n] & IN_FLIGHT_MASK) == 0);
        if
        :: quiet ->
            STEP(is_live = live[n]);
            do
            :: is_live && j < devices -> STEP(snapshot_used[j] = snapshot_used[j] + USAGE(n, CELL(j, r)); j++)
            :: else -> break
            od;
            is_live = false; j = 0; n++
        :: else
        fi
    :: else -> n = 0; break
    od;
    do
    :: quiet && j < devices -> STEP(snapshot_gate[j] = gates[CELL(j, r)]; j++)
    :: else -> j = 0; break
    od;
#ifndef MUTANT_ONE_LOOK
    do
    :: quiet && n < slots -> STEP(looks = looks - ops[n]; n++)  // second_look
    :: else -> n = 0; break
    od;
    quiet = quiet && looks == 0;
#endif
    looks = 0;
    if :: quiet -> STEP(quiet = slots_used == slots) :: else fi;
    if :: quiet -> STEP(quiet = devices_used == devices) :: else fi;
    slots = 0
}

#ifdef MUTANT_NO_TAG
#define SAME_TAG(word, seen) true
#define NEXT_TAG(seen) TAG(seen)
#else
#define SAME_TAG(word, seen) (TAG(word) == TAG(seen))
#define NEXT_TAG(seen) ((TAG(seen) + 1) & TAG_MASK)
#endif

#define SEEN snapshot_gate[d]
#define LEAK ((AMOUNT(SEEN) - snapshot_used[d]) & AMOUNT_MASK)

inline correct(d, cell) {
#ifndef MUTANT_NO_CORRECT
    if
    :: LEAK != 0 ->
        STEP(word = gates[cell]);
        do
        :: !SAME_TAG(word, snapshot_gate[d]) -> break
        :: d_step { SAME_TAG(word, snapshot_gate[d]) && gates[cell] == word ->
                    gates[cell] = ((AMOUNT(word) - LEAK) & AMOUNT_MASK) | (NEXT_TAG(snapshot_gate[d]) << TAG_SHIFT);
                    check_books() } -> break
        :: d_step { SAME_TAG(word, snapshot_gate[d]) && gates[cell] != word -> word = gates[cell] }
        :: DIES_HERE
        od;
        word = 0
    :: else
    fi
#else
    skip
#endif
}

#define LIMIT(scope, r) ((scope) == PROCESS -> LIMIT_PROCESS : ((scope) == PROCESS_TOTAL -> LIMIT_PROCESS_TOTAL : \
                         ((scope) == TENANT -> LIMIT_TENANT(r) : LIMIT_TENANT_TOTAL)))

#ifdef MUTANT_DEVICES_COUNTED_TWICE
#define SNAPSHOT_DEVICES devices_used
#else
#define SNAPSHOT_DEVICES devices
#endif

// Leaves in `quiet` whether there is a proof, and in `proved` whether it is one of the denial.
inline proved_usage() {
    NOW(sum = 0; quiet = false);
    if
    :: denied == PROCESS || denied == PROCESS_TOTAL ->
        STEP(looks = ops[slot_of[id]]);
        if
        :: denied == PROCESS -> STEP(sum = USAGE(slot_of[id], CELL(DEVICE(id), k)))
        :: else -> slot_total(slot_of[id], k)
        fi;
        STEP(quiet = (looks & IN_FLIGHT_MASK) == 0 && ops[slot_of[id]] == looks; looks = 0)
    :: denied == TENANT ->
        observe(k);
        if :: quiet -> correct(DEVICE(id), CELL(DEVICE(id), k)); sum = snapshot_used[DEVICE(id)] :: else fi
    :: denied == TENANT_TOTAL ->
        observe(k);
        do
        :: d_step { quiet && i < SNAPSHOT_DEVICES -> sum = sum + snapshot_used[i] };
            correct(i, CELL(i, k));
            i++
        :: d_step { !quiet || i >= SNAPSHOT_DEVICES -> i = 0 } -> break
        od
    fi;
    NOW(
        proved = quiet && EXCEEDS(sum, LIMIT(denied, k));
        sum = 0; quiet = false; devices = 0; h_d = 0;
        do :: h_d < D -> snapshot_used[h_d] = 0; snapshot_gate[h_d] = 0; h_d++ :: else -> break od;
        h_d = 0
    )
}

// I4: a denial that claims to be proved.
inline deny_proved() {
    assert(was_full[id] & FULL_BIT(denied, k))
}

inline charge() {
    NOW(in_charge[id] = true; was_full[id] = 0; note_full());
    try_charge();
#ifdef MUTANT_DENY_UNPROVED
    if :: denied != NONE -> deny_proved() :: else fi;
#else
    if :: denied != NONE -> reap() :: else fi;
    do
    :: denied != NONE ->
        proved_usage();
        if :: proved -> deny_proved(); break :: else fi;
        try_charge();
#ifndef MUTANT_WAIT_FOR_QUIET
        round++;
        if
        :: round >= PROOF_ROUNDS -> break
        :: round < PROOF_ROUNDS -> skip
        :: round < PROOF_ROUNDS -> break  // the deadline
        fi
#endif
    :: else -> break
    od;
#endif
    NOW(in_charge[id] = false; was_full[id] = 0; proved = false; round = 0; freed = 0; k = 0)
}

// Of the resources in the mask `what`: an object that shrinks gives back a part.
inline release(what) {
    NOW(i = 0; amount = held[id] & (what); held[id] = held[id] & ~(what));
    begin(slot_of[id]);
    do
    :: i < R ->
        if :: amount & BIT(i) -> lower(slot_of[id], CELL(DEVICE(id), i), 1) :: else fi;
        i++
    :: else -> i = 0; amount = 0; break
    od;
    end(slot_of[id])
}

inline try_claim(slot) {
    try_lock(slot);
    if
    :: got ->
#ifndef MUTANT_CLAIM_UNCHECKED
        STEP(is_live = live[slot]);
#else
        is_live = false;
#endif
        if
        :: is_live -> unlock(slot)
        :: else ->
            STEP(slots_used = MAX(slots_used, (slot) + 1));
            STEP(live[slot] = true; slot_of[id] = slot; owners[slot]++; has_slot = true; claimed = true; got = false)
        fi
    :: else
    fi
}

inline claim() {
    NOW(claimed = false; round = 0; n = 0);
    do
    :: n < S && !claimed ->
        STEP(is_live = live[n]);
        if :: !is_live -> try_claim(n) :: else fi;
        NOW(is_live = false; n++)
    :: n == S && !claimed && round == 0 ->
        reap();
        if :: freed == 0 -> break :: else fi;
        NOW(freed = 0; n = 0; round = 1)
    :: else -> break
    od;
    NOW(n = 0; round = 0; freed = 0)
}

// The owner lets its lock go and then reaps itself, which a forked child that still has the lock
// prevents: then the slot stays, as the child's.
inline retire() {
    NOW(t = slot_of[id]; held[id] = 0);
#ifdef MUTANT_RETIRE_UNDER_CHILD
    empty_slot(t);
    STEP(lock[t] = lock[t] & ~BIT(id); owners[t]--; has_slot = false);
#else
    STEP(lock[t] = lock[t] & ~BIT(id); owners[t]--; has_slot = false);
    try_lock(t);
    if
    :: got ->
        STEP(is_live = live[t]);
        if :: is_live -> empty_slot(t) :: else fi;
        unlock(t)
    :: else
    fi;
#endif
    NOW(t = 0; is_live = false)
}

proctype process(byte id) {
    LOCALS;
start:
#ifdef CLAIM
    claim();
    if :: !claimed -> goto rest :: else fi;
    claimed = false;
#else
    has_slot = true;
#endif
#if D > 1
    STEP(devices_used = MAX(devices_used, DEVICE(id) + 1));
#endif
    do
    :: made < OBJECTS ->
        charge();
        made++;
        if
        :: held[id] ->
            if
            :: release(BIT(R) - 1)
            :: made == OBJECTS -> break
#if R > 1
            :: made == OBJECTS -> release(1)
#endif
            fi
        :: else
        fi
    :: else -> break
    od;
    if
    :: goto rest                          // it lives on
    :: d_step { end_process() }; goto dead  // it exits, as programs do, without closing anything
    :: retire()
    fi;
rest:
    goto finish;
#if STOPS
stopped:
    goto finish;
#endif
dead:
    NOW(forget());
#if BIRTHS
    if
    :: d_step { births < BIRTHS -> births++ }; goto start
    :: skip
    fi;
#endif
finish:
    NOW(forget(); resting++)
}

// When all others rest, one reap and one reconcile make the books true (I2).
proctype judge() {
    LOCALS;
    byte id = JUDGE;
    bool excused;
    atomic {
        resting == P;
        // Excused: what a stopped process is in the middle of, or what a process that died in an
        // operation left in a slot that its child keeps.
        n = 0;
        do
        :: n < P -> excused = excused || working_in[n] != 0; n++
        :: else -> n = 0; break
        od;
        do
        :: n < S -> excused = excused || (lock[n] != 0 && (owners[n] == 0 || (ops[n] & IN_FLIGHT_MASK) != 0)); n++
        :: else -> n = 0; break
        od;
#ifdef FORK
        if :: excused -> goto dead :: else fi;
#else
        assert(!excused || stops > 0);
        if :: excused -> goto dead :: else fi;
#endif
        reap();
        k = 0;
        do
        :: k < R ->
            observe(k);
            assert(quiet);
            i = 0;
            do
            :: i < devices ->
                correct(i, CELL(i, k));
                d_step {
                    h_sum = 0;
                    h_s = 0;
                    do
                    :: h_s < S ->
                        if :: live[h_s] -> h_sum = h_sum + USAGE(h_s, CELL(i, k)) :: else fi;
                        h_s++
                    :: else -> break
                    od;
                    assert(AMOUNT(gates[CELL(i, k)]) == h_sum);
                    h_p = 0;
                    do
                    :: h_p < P ->
                        if :: DEVICE(h_p) == i && (held[h_p] & BIT(k)) -> h_sum-- :: else fi;
                        h_p++
                    :: else -> break
                    od;
                    assert(h_sum == 0)
                };
                i++
            :: else -> break
            od;
            k++
        :: else -> break
        od;
dead:
stopped:
        judged = true
    }
}

init {
    d_step {
        devices_used = 1;
        h_p = 0;
#ifndef CLAIM
        slots_used = S;
        do
        :: h_p < P ->
#ifdef FORK
            slot_of[h_p] = (h_p == 0 -> 0 : h_p - 1);
#else
            slot_of[h_p] = h_p;
#endif
            live[slot_of[h_p]] = true;
            owners[slot_of[h_p]]++;
            lock[slot_of[h_p]] = lock[slot_of[h_p]] | BIT(h_p);
            h_p++
        :: else -> break
        od;
#endif
        h_p = 0
    };
    atomic {
        h_p = 0;
        do
        :: h_p < P -> run process(h_p); h_p++
        :: else -> break
        od;
        run judge()
    }
}

#ifdef LIVENESS
// I3 and the "in the end" of I2: whoever is not stopped ends, and then the judge.
ltl everyone_ends { <> judged }
#endif
