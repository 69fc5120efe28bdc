// The model's state, and what must hold of it.

// The segment.
byte gates[CELLS];
byte ops[S];
bool live[S];
byte usage[S * CELLS];
byte slots_used;
byte devices_used = 1;
byte claims;
byte asked;  // header.pause: 1 + the process that proves

// The kernel: per slot, which processes have its lock. Only a fork makes it several. With REAPER it is
// the lock of both bytes; an owner's is that of the first.
byte lock[S];
#define REAPER 128

// What only the model knows. The judge is process P.
byte slot_of[P + 1];
byte owners[S];          // living processes that own the slot
byte held[P + 1];        // the resources of the verbs object that a process has, one bit each
byte working_in[P + 1];  // 1 + the slot in which a process has an operation in flight; 0 for none
byte kills, stops, births, resting;
bool judged;

// Of one step, not part of a state. A note on the form: spin takes no d_step that ends with a loop.
hidden byte h_p, h_s, h_c, h_r, h_d, h_sum, h_all, h_own;

// Never set: they are in each assertion to name it in spin's report.
hidden byte I1_broken, I2_broken, I4_broken, COVERED_broken, WITNESS_seen;

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

// COVERED: no gate is ever below the sum of the slots. Part of each step that may break it.
inline check_covered(cell) {
#ifndef MUTANT
    h_sum = 0;
    h_s = 0;
    do
    :: h_s < S -> h_sum = h_sum + USAGE(h_s, cell); h_s++
    :: else -> break
    od;
    assert(AMOUNT(gates[cell]) >= h_sum || COVERED_broken);
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
            assert(h_all <= LIMIT_TENANT_OF(h_r) || I1_broken);
            assert(h_own <= LIMIT_PROCESS || I1_broken);
            h_sum = h_sum + h_all;
            h_s = h_s + h_own;
            h_d++
        :: else -> break
        od;
        assert(h_sum <= LIMIT_TENANT_TOTAL || I1_broken);
        assert(h_s <= LIMIT_PROCESS_TOTAL || I1_broken);
        h_r++
    :: else -> break
    od;
    h_r = 0
}

// I2, at rest after a reap: the gate, the slots and what the living hold are the same. (A process that is stopped
// between destroying an object and uncharging it keeps the charge; one that dies there leaves it to the
// forked child that keeps the slot.)
inline check_truth(d, r) {
    h_all = 0;
    h_p = 0;
    do
    :: h_p < P -> h_all = h_all + (DEVICE(h_p) == (d) && (held[h_p] & BIT(r)) != 0); h_p++
    :: else -> break
    od;
    sum_usage(S, d, r, false);
    assert(h_sum == h_all || ((FORKED || stops > 0) && h_sum > h_all) || I2_broken);
    assert(AMOUNT(gates[CELL(d, r)]) == h_sum || I2_broken)
}

// For I4: is the limit full at this instant, by what the living use, with nothing in flight that
// counts? `denied` and k say which limit.
inline look_really() {
    if
    :: denied == PROCESS -> count_working(slot_of[id]); sum_usage(slot_of[id], DEVICE(id), k, true)
    :: denied == PROCESS_TOTAL -> count_working(slot_of[id]); sum_usage(slot_of[id], D, k, true)
    :: denied == TENANT -> count_working(S); sum_usage(S, DEVICE(id), k, true)
    :: else -> count_working(S); sum_usage(S, D, k, true)
    fi;
    really = h_all == 0 && EXCEEDS(h_sum, LIMIT_OF(denied, k))
}
