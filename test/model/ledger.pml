// The ledger of shm/ledger.hpp as a Promela model: can I1 to I4 be broken by any order of steps,
// any kill and any stop? test/model/run.sh asks spin, for each configuration below, exhaustively.
//
// Modelled, step by step and under the code's own names: claim, charge of several resources with
// roll-back (find_full, begin, raise_gate, raise_slot, lower_slot, lower_gate, end), release, retire,
// reap (try_lock, empty_slot), observe (first_look, second_look), correct, the proved denial, limits
// per process, per tenant and for the sum over devices, and the kernel's lock, which goes when the
// last process that has it dies. One d_step is one access to shared memory or one system call; a
// process may be killed, and stopped for ever, in place of any of them. A process that is stopped
// for a while is one that the search does not pick for a while.
//
// Not modelled: weak memory (the code uses sequentially consistent operations only), hostile bytes
// (I5, see the fuzzer), peaks, events and identities (for people), more than P processes, and time:
// `proof_wait_ns` is PROOF_ROUNDS rounds, of which the last may come at any moment. An observer that
// sees an operation in flight stops at once, where the code finishes the look and then gives up; a
// read that nothing is done with cannot matter. Deaths are bounded by KILLS, deaths by a process's
// own exit are not.
//
// Configuration (-D): P processes, S slots, D devices, R resources per object, KILLS, STOPS,
// PROOF_ROUNDS, OBJECTS that each process makes one after the other, BIRTHS of new processes in place of
// dead ones, LIMIT_* below, CLAIM (slots are claimed; otherwise all start with one), FORK (process 1
// is a forked child that shares the slot of process 0). MUTANT_* are faults put in on purpose; spin
// must find each.

#ifndef P
#define P 3
#endif
#ifndef S
#define S P
#endif
#ifndef D
#define D 1
#endif
#ifndef R
#define R 1
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef PROOF_ROUNDS
#define PROOF_ROUNDS 1
#endif
#ifndef OBJECTS
#define OBJECTS 1
#endif
#ifndef BIRTHS
#define BIRTHS 0
#endif
#ifndef LIMIT_TENANT
#define LIMIT_TENANT(r) 1
#endif
#ifndef DEVICE
#define DEVICE(p) 0
#endif

#define CELLS (D * R)
#define CELL(d, r) ((d) * R + (r))
#define USAGE(slot, cell) usage[(slot) * CELLS + (cell)]

// A gate's word: the tag above the amount, as in shm/layout.hpp, with fewer bits.
#define TAG_SHIFT 5
#define AMOUNT_MASK 31
#define AMOUNT(word) ((word) & AMOUNT_MASK)
#define TAG(word) ((word) >> TAG_SHIFT)

// The ops word, with 3 bits for what is in flight.
#define OPS_BEGIN 1
#define OPS_END 7
#define IN_FLIGHT_MASK 7

#define UNLIMITED 255
#define EXCEEDS(used, limit) ((limit) != UNLIMITED && (used) + 1 > (limit))
