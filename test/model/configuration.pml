// What a configuration of the model can set with -D, and the words that the model is written in.

#ifndef P
#define P 3  // processes, not counting the judge
#endif
#ifndef S
#define S P  // slots
#endif
#ifndef PROVERS
#define PROVERS P  // how many of them, the last ones, prove a denial; the others give up at once
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
#define PROOF_ROUNDS 1  // how often a prover looks before `proof_wait_ns` is over
#endif
#define UNLIMITED 255
#ifndef LIMIT_PROCESS
#define LIMIT_PROCESS UNLIMITED
#endif
#ifndef LIMIT_PROCESS_TOTAL
#define LIMIT_PROCESS_TOTAL UNLIMITED
#endif
#ifndef LIMIT_TENANT
#define LIMIT_TENANT UNLIMITED  // of all resources but the last
#endif
#ifndef LIMIT_TENANT_LAST
#define LIMIT_TENANT_LAST LIMIT_TENANT  // of the last
#endif
#ifndef LIMIT_TENANT_TOTAL
#define LIMIT_TENANT_TOTAL UNLIMITED
#endif
// CLAIM: processes claim their slots; otherwise each starts with one.
// FORK: process 1 is a forked child of process 0 and shares its slot.
// PAUSE: provers ask newcomers to hold back.
// LEAKED: an earlier death has left one gate too high.
// LIVENESS: with the claim that everyone ends.
// NO_JUDGE: without I2, which finds faults in I1 and I4 sooner.

#ifdef CLAIM
#define CLAIMS 1
#else
#define CLAIMS 0
#endif
#ifdef PAUSE
#define PAUSES 1
#else
#define PAUSES 0
#endif
#ifdef FORK
#define FORKED 1
#else
#define FORKED 0
#endif

#define BIT(n) (1 << (n))
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define EXCEEDS(used, limit) ((limit) != UNLIMITED && (used) + 1 > (limit))

#define DEVICE(p) ((p) % D)
#define CELL(d, r) ((d) * R + (r))
#define CELLS (D * R)
#define USAGE(slot, cell) usage[(slot) * CELLS + (cell)]

// A gate's word and an ops word as in shm/ledger/layout.hpp, with fewer bits.
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

// Scopes of limits, in the order in which `fits` looks at them.
#define NONE 0
#define PROCESS 1
#define TENANT 2
#define PROCESS_TOTAL 3
#define TENANT_TOTAL 4
#define IS_OWN(scope) ((scope) == PROCESS || (scope) == PROCESS_TOTAL)
#define LIMIT_TENANT_OF(r) ((r) == R - 1 -> LIMIT_TENANT_LAST : LIMIT_TENANT)
#define LIMIT_OF(scope, r) ((scope) == PROCESS -> LIMIT_PROCESS : ((scope) == PROCESS_TOTAL -> LIMIT_PROCESS_TOTAL : \
                            ((scope) == TENANT -> LIMIT_TENANT_OF(r) : LIMIT_TENANT_TOTAL)))

// What a process is doing, or what it reaps for.
#define CHARGE 0
#define UNCHARGE 1
#define PROVE 2
#define RETIRE 3
#define JOIN 4
#define JOIN_AGAIN 5
#define JUDGE 6

// Where a process is: before the step of that name.
mtype = {
    born, claim_look, claim_lock, claim_check, claim_unlock, claim_own, claim_count, claim_used, claim_live, appear,
    fits_process, fits_tenant, fits_process_total, fits_tenant_total,
    look_pause, hold_back, begin, raise_gate, raise_slot, lower_slot, lower_gate, end,
    own_ops, own_used, own_ops_again,
    count_devices, count_slots, count_claims, first_look, look_live, look_used, read_gates, second_look,
    recount_slots, recount_devices, count_again, pause, go_ahead, correct, alive_lock, alive_state, alive_claims,
    reap_look, reap_lock, reap_check, empty_begin, empty_load, empty_read, empty_end, empty_free, reap_unlock,
    choose, let_go, dead, stopped, finished
};

// Where an operation begins.
#define BEGIN (PAUSES -> look_pause : begin)

// A line of a counterexample; a search prints nothing.
#define TELL printf("process %d: %e\n", id, pc);

// What mutants do otherwise.
#ifdef MUTANT_SLOT_BEFORE_GATE
#define FIRST_RAISE raise_slot
#else
#define FIRST_RAISE raise_gate
#endif
#ifdef MUTANT_GATE_FIRST_ON_UNCHARGE
#define FIRST_LOWER lower_gate
#else
#define FIRST_LOWER lower_slot
#endif
#ifdef MUTANT_NO_IN_FLIGHT
#define OPS_ADD(slot, n) skip
#else
#define OPS_ADD(slot, n) ops[slot] = ops[slot] + n
#endif
#ifdef MUTANT_NO_TAG
#define SAME_TAG(word, seen) true
#define NEXT_TAG(seen) TAG(seen)
#else
#define SAME_TAG(word, seen) (TAG(word) == TAG(seen))
#define NEXT_TAG(seen) ((TAG(seen) + 1) & TAG_MASK)
#endif
#ifdef MUTANT_CLAIM_AS_OWNER
#define CLAIMS_AS 0
#else
#define CLAIMS_AS REAPER
#endif
#ifdef MUTANT_REAP_WITHOUT_LOCK
#define FREE_TO_REAP(t) (owners[t] == 0)
#define REAPS_AS 0
#else
#define FREE_TO_REAP(t) (lock[t] == 0)
#define REAPS_AS (BIT(id) | REAPER)
#endif
#ifdef MUTANT_NO_ROLL_BACK
#define ROLLS_BACK 0
#else
#define ROLLS_BACK 1
#endif
#ifdef MUTANT_GATES_OF_SOME
#define GATES_READ devices
#else
#define GATES_READ D
#endif
#ifdef MUTANT_HOLD_BACK_FOR_EVER
#define PATIENCE_OVER (asked == 0)
#else
#define PATIENCE_OVER true
#endif
#ifdef MUTANT_ONE_BYTE
#define IS_OWNERS(lock_word) ((lock_word) != 0)
#else
#define IS_OWNERS(lock_word) ((lock_word) != 0 && ((lock_word) & REAPER) == 0)
#endif
#ifdef MUTANT_WAIT_FOR_LOCK
#define WAITS_FOR_REAPER(t) (live[t] && lock[t] != 0 && owners[t] == 0)
#else
#define WAITS_FOR_REAPER(t) false
#endif
#ifdef MUTANT_RETIRE_UNDER_CHILD
#define AFTER_EMPTY (doing == RETIRE -> let_go : reap_unlock)
#else
#define AFTER_EMPTY reap_unlock
#endif
#ifdef MUTANT_FREE_BEFORE_EMPTY
#define FIRST_EMPTY empty_free
#define AFTER_FREE empty_begin
#define LAST_EMPTY AFTER_EMPTY
#else
#define FIRST_EMPTY empty_begin
#define LAST_EMPTY empty_free
#define AFTER_FREE AFTER_EMPTY
#endif
