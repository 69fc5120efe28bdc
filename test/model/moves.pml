// Between the steps: the process's own variables, and its next step.

// `id` is the process's number.
#define LOCALS \
    mtype pc;           /* where it is */ \
    byte doing;         /* and what it does */ \
    bool has_slot; \
    byte made;          /* objects so far */ \
    byte k;             /* charge, observe: the resource */ \
    byte i;             /* roll-back, uncharge: the resource; correct: the device */ \
    byte denied;        /* charge: the scope of the limit that is full */ \
    bool already;       /* charge: resource k is in the accounts */ \
    byte round;         /* prove: looks so far */ \
    byte amount, taken; /* uncharge: the resources, one bit each; empty, lower: how much */ \
    byte sum, j;        /* sums over devices: so far, up to device j */ \
    byte t, freed;      /* reap: the slot; how many so far */ \
    byte c, word;       /* empty: the cell; the ops word */ \
    bool emptying;      /* lower: for empty_slot */ \
    byte n;             /* observe, all_alive, claim: the slot */ \
    byte looks;         /* observe: first_look less second_look */ \
    bool asking, seen;  /* observe_among_others */ \
    byte devices, slots, lives, holders, claims_seen; \
    byte snapshot_used[D]; \
    byte snapshot_gate[D]; \
    bool really         /* see look_really */

inline forget_snapshot() {
    h_d = 0;
    do
    :: h_d < D ->
        snapshot_used[h_d] = 0;
#ifdef MUTANT_GATES_OF_SOME
        snapshot_gate[h_d] = 1;  // what happens to be on the stack
#else
        snapshot_gate[h_d] = 0;
#endif
        h_d++
    :: else -> break
    od;
    devices = 0;
    slots = 0;
    lives = 0;
    holders = 0;
    claims_seen = 0;
    looks = 0;
    sum = 0;
    j = 0;
    n = 0;
    really = false
}

inline forget() {
    doing = CHARGE;
    made = 0;
    k = 0;
    i = 0;
    denied = NONE;
    already = false;
    round = 0;
    amount = 0;
    taken = 0;
    t = 0;
    freed = 0;
    c = 0;
    word = 0;
    emptying = false;
    asking = false;
    seen = false;
    forget_snapshot()
}

// A process gives up its share of its slot. The kernel destroys verbs objects when the last process
// with the device's file is gone, which is when the last owner is.
inline leave_slot() {
    h_s = slot_of[id];
    owners[h_s]--;
    h_p = 0;
    do
    :: h_p < P ->
        held[h_p] = (owners[h_s] == 0 && slot_of[h_p] == h_s -> 0 : held[h_p]);
        h_p++
    :: else -> break
    od;
    has_slot = false
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

// After a charge or an uncharge.
inline go_on() {
    i = 0;
    k = 0;
    denied = NONE;
    round = 0;
    amount = 0;
    if
    :: held[id] != 0 -> pc = choose
    :: held[id] == 0 && made < OBJECTS -> made++; try_charge()
    :: else -> pc = finished
    fi
}

// ---- charge and uncharge

inline try_charge() {
    doing = CHARGE;
    denied = NONE;
    k = 0;
    pc = BEGIN
}

inline retry() {
    doing = CHARGE;
    denied = NONE;
    k = 0;
    fits_after(NONE)
}

// The next limit to look at, now that `scope` of resource k has room.
inline fits_after(scope) {
    sum = 0;
    j = 0;
    h_s = (scope) + 1;
    do
    :: h_s == PROCESS && LIMIT_PROCESS != UNLIMITED -> pc = fits_process; break
    :: h_s == TENANT && LIMIT_TENANT_OF(k) != UNLIMITED -> pc = fits_tenant; break
    :: h_s == PROCESS_TOTAL && LIMIT_PROCESS_TOTAL != UNLIMITED -> pc = fits_process_total; break
    :: h_s == TENANT_TOTAL && LIMIT_TENANT_TOTAL != UNLIMITED -> pc = fits_tenant_total; break
    :: h_s > TENANT_TOTAL && already -> already = false; k++; pc = (k < R -> FIRST_RAISE : end); break
    :: h_s > TENANT_TOTAL && !already && k == R - 1 -> k = 0; pc = BEGIN; break
    :: h_s > TENANT_TOTAL && !already && k < R - 1 -> k++; h_s = PROCESS
    :: else -> h_s++
    od;
    h_s = 0
}

// h_c: whether `scope` of resource k is full.
inline fitted(scope) {
    if
    :: !h_c -> fits_after(scope)
    :: h_c && already -> roll_back(scope, k + 1)
    :: else -> denied = scope; sum = 0; j = 0; denied_once()
    fi
}

// Resource k was found full; what is raised of the first `raised` resources goes back.
inline roll_back(scope, raised) {
    denied = scope;
    already = false;
    sum = 0;
    j = 0;
    i = (raised) * ROLLS_BACK;
    roll_back_on()
}

inline roll_back_on() {
    if
    :: i > 0 -> i--; pc = FIRST_LOWER
    :: else -> pc = end
    fi
}

inline uncharge_on() {
    do
    :: i < R && (amount & BIT(i)) == 0 -> i++
    :: else -> break
    od;
    pc = (i < R -> FIRST_LOWER : end)
}

// Which slot, which cell and how much to lower.
#define LOWER_SLOT (emptying -> t : slot_of[id])
#define LOWER_CELL (emptying -> c : CELL(DEVICE(id), i))
#define LOWER_MOST (emptying -> amount : 1)

inline lowered() {
    taken = 0;
    if
    :: emptying -> c++; amount = 0; pc = (c < CELLS -> empty_load : empty_read)
    :: !emptying && doing == UNCHARGE -> i++; uncharge_on()
    :: else -> roll_back_on()
    fi
}

// ---- prove

inline denied_once() {
    if
    :: id < P - PROVERS || round == PROOF_ROUNDS -> go_on()  // denied without a proof
    :: else -> prove()
    fi
}

inline prove() {
    doing = PROVE;
#ifdef MUTANT_DENY_UNPROVED
    look_really();
    assert(really || I4_broken);
#endif
#ifndef MUTANT_WAIT_FOR_QUIET
    round++;
#endif
    if
    :: IS_OWN(denied) -> pc = own_ops
    :: else -> observe()
    fi
}

inline not_proved() {
    forget_snapshot();
    reap()
}

// Nobody who is dead was in the way.
inline prove_again() {
    forget_snapshot();
    retry()
}

inline proved() {
#ifdef WITNESS_PROVED
    assert(WITNESS_seen);
#endif
    assert(really || I4_broken);
    forget_snapshot();
    go_on()
}

// ---- observe, correct, all_alive

// A process need not read the words that only it writes.
#define MINE(slot) (has_slot && !FORKED && (slot) == slot_of[id])

inline observe() {
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

inline first_look_on() {
    n = n + 1 + MINE(n + 1);
    if
    :: n < slots -> pc = first_look
    :: else -> n = MINE(0); pc = (n == slots -> read_gates : (CLAIMS -> look_live : look_used)); n = (n == slots -> 0 : n)
    fi
}

inline look_live_on() {
    n = n + 1 + MINE(n + 1);
    if
    :: n < slots -> pc = look_live
    :: else -> n = MINE(0); pc = look_used
    fi
}

// One device after the other.
inline look_used_on() {
    n = n + 1 + MINE(n + 1);
    if
    :: n < slots -> pc = look_used
    :: n >= slots && j + 1 < devices -> j++; n = MINE(0); pc = look_used
    :: else -> j = 0; n = 0; pc = read_gates
    fi
}

inline second_look_from(slot) {
    n = slot;
#ifdef MUTANT_ONE_LOOK
    looks = 0;
    n = slots;
#endif
    if
    :: n < slots -> pc = second_look
    :: n >= slots && looks != 0 -> no_view()
    :: else -> n = 0; recount()
    fi
}

inline recount() {
    if
    :: CLAIMS -> pc = recount_slots
    :: !CLAIMS && D > 1 -> pc = recount_devices
    :: else -> viewed()
    fi
}

inline no_view() {
    assert(doing != JUDGE || I2_broken);  // nothing is in flight then
    forget_snapshot();
    if
    :: PAUSES && !asking -> pc = pause
    :: PAUSES && asking -> pc = go_ahead
    :: else -> not_proved()
    fi
}

inline viewed() {
    if
    :: asking -> seen = true; pc = go_ahead
    :: else -> use_view()
    fi
}

inline use_view() {
    i = (doing == PROVE && denied == TENANT -> DEVICE(id) : 0);
    correct_from()
}

#ifdef MUTANT_NO_CORRECT
#define LEAK(d) 0
#else
#define LEAK(d) ((AMOUNT(snapshot_gate[d]) - snapshot_used[d]) & AMOUNT_MASK)
#endif
#define CORRECTED(word, d) (((AMOUNT(word) - LEAK(d)) & AMOUNT_MASK) | (NEXT_TAG(snapshot_gate[d]) << TAG_SHIFT))

// Corrects device i and those after it that count, then uses the view.
inline correct_from() {
    h_all = (doing == PROVE && denied == TENANT -> DEVICE(id) + 1 : devices_used);
    do
    :: i < h_all && LEAK(i) == 0 -> sum = sum + snapshot_used[i]; i++
    :: else -> break
    od;
    if
    :: i < h_all -> pc = correct
    :: i >= h_all && doing == JUDGE -> judge_view()
    :: else -> i = 0; prove_by_view()
    fi
}

inline prove_by_view() {
    if
    :: EXCEEDS(sum, LIMIT_OF(denied, k)) ->
#ifdef MUTANT_DEAD_COUNTED
        proved()
#else
        sum = 0;
        n = 0;
        alive_from()
#endif
    :: else -> prove_again()
    fi
}

// Looks whether slot n and those after it that the view counts are alive.
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

inline judge_view() {
    check_truth(0, k);
    check_truth(D - 1, k);
    forget_snapshot();
    i = 0;
    k++;
    if
    :: k < R -> observe()
    :: else -> pc = finished
    fi
}

// ---- reap and claim

inline reap() {
    t = 0;
    freed = 0;
    reap_from()
}

// Looks at slot t and those after it, then goes on with what the reaping was for.
inline reap_from() {
    do
    :: t < S && has_slot && t == slot_of[id] -> t++
    :: else -> break
    od;
    if
    :: t < S -> pc = reap_look
    :: t >= S && doing == PROVE -> t = 0; freed = 0; retry()
    :: t >= S && doing == JUDGE -> t = 0; freed = 0; observe()
    :: else ->
        pc = (doing == JOIN_AGAIN && freed == 0 -> finished : claim_look);
        t = 0;
        freed = 0
    fi
}

inline claim_on() {
    n++;
    if
    :: n < S -> pc = claim_look
    :: n == S && doing == JOIN -> n = 0; doing = JOIN_AGAIN; reap()
    :: else -> n = 0; pc = finished
    fi
}
