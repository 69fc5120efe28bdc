// The ledger of shm/ledger/ledger.hpp as a Promela model: can I1 to I4 be broken by any order of steps,
// any kill and any stop? test/model/run.sh asks spin, exhaustively, for each of its configurations.
//
//   configuration.pml   what a configuration can set, and the words of the model
//   invariants.pml      the state, and what must hold of it
//   moves.pml           what a process does by itself, between the steps
//   steps.pml           the steps: read this beside shm/ledger/steps.hpp, shm/ledger/charge.cpp and shm/ledger/reap.cpp
//
// Modelled under the code's own names: claim, charge of several resources with roll-back, uncharge
// of all or a part, retire, reap, reconcile (observe, correct), the proved denial, limits per
// process, per tenant and for sums over devices, devices that appear, and the kernel's lock on each
// slot, which goes when the last process that has it ends.
//
// A step is one access to shared memory or one system call. Each step that writes has the name of a failpoint in the
// code, see steps.pml. Failpoints left out: record.
//
// In place of any step its process may be killed, or stopped for ever. (Stopped for a while is what the
// search does to everyone.) Where nothing is lost by it, steps are fewer than in the code, and the
// search is shorter:
//   - A compare-and-swap loop is one step, since rounds that fail have no effect. That they are few
//     is not shown: each means that somebody else got something done.
//   - An observer that meets an operation in flight stops looking. The code reads the other ops words first. Nor
//     does it look 16 times in a row: a look that fails changes nothing, so it comes to the same as a
//     process that was slow.
//   - A process does not look at its own slot, which nobody else writes (but with FORK).
//   - What never changes in a configuration is not read: slots and who has which (only with CLAIM),
//     the number of devices (only with D > 1), `pause` (only with PAUSE), limits that are unlimited.
//   - In hold_back, patience may be over at once, so that nobody is ever seen to wait.
//
// Not modelled: weak memory (the code's operations are sequentially consistent), hostile bytes (I5),
// peaks, events and identities (for people), lock files that cannot be opened, threads (but as FORK)
// and time: `proof_wait_ns` is PROOF_ROUNDS looks. A death drops lock and verbs objects in one step. The
// tag of a gate has 3 bits, which no configuration wraps; that a tag can wrap, MUTANT_SHORT_TAG shows:
// the code's, of 12 bits, after 4,096 corrections of one gate while one prover is stopped between its
// view and its correction. All amounts are 1.
//
// MUTANT_* are faults put in on purpose, each of which spin must find. With MUTANT it is asked for I1
// to I4 alone, not for the stronger COVERED on which they rest. WITNESS_* claim that something never
// happens which must happen, lest a search be empty.
#include "configuration.pml"
#include "invariants.pml"
#include "moves.pml"
#include "steps.pml"

proctype process(byte id) {
    LOCALS;
    pc = born;
    steps()
}

// I2: when all others rest, one reap and one reconcile make the accounts true. Excused are operations of
// stopped processes, and operations that a dead process left in a slot that its child keeps.
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
        assert(!excused || I2_broken);
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
    }
}

#ifdef LIVENESS
// I3, and finally I2: every process that is not stopped comes to its end, in any order of steps.
ltl everyone_ends { <> judged }
#endif
