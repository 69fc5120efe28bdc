// The word by which a rate is counted, as shm/ledger/pace.hpp takes from it: callers that take at once and wait until it is paid
// for, any of which may be killed while it waits. With FORGER, somebody writes anything into the word, once.
//
// Time goes on by 1 whenever nobody is due who has not begun. `level` is a bucket that leaks 1 in that time and is filled by what
// begins; `owed` has what was reserved and is not paid for. I1: what begins fits into the burst. I4: nobody is denied whose call
// would be paid for within the longest delay; also beside a forger, for one caller. I1 is not promised there: who may charge may set
// the word back.

#ifndef P
#define P 3
#endif
#ifndef CALLS
#define CALLS 2  // that each tries
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define COST 2
#define BURST 4
#define LONGEST 3
#define END 9  // of time
#define NOT_WAITING 255
#define MORE(a, b) (a > b -> a : b)
#define LESS(a, b) (a < b -> a : b)

byte now, word, level, owed, kills;
byte due[P];
bool I1_broken, I4_broken, WITNESS_seen;

#define FULL (now + BURST)
#define LATEST (FULL + LONGEST)
#ifdef MUTANT_NO_CLAMP
#define FORGED(before) false
#else
#define FORGED(before) (before > LATEST)
#endif
#ifdef MUTANT_IDLE_COUNTS
#define FROM(before) (FORGED(before) -> LATEST - COST : before)
#else
#define FROM(before) (FORGED(before) -> LATEST - COST : MORE(before, now))
#endif
#define WAIT(from) (from + COST > FULL -> from + COST - FULL : 0)

inline begin_call() {
    level = level + COST;
#ifndef FORGER
    I1_broken = level > BURST;
    assert(!I1_broken);
#endif
}

inline denied() {
    I4_broken = owed + COST <= BURST + LONGEST;
    assert(!I4_broken);
}

inline store(from) {
    word = LESS(from + COST, LATEST);
    owed = owed + COST;
}

proctype caller(byte p) {
    byte left = CALLS, before, wait;
    do
    :: left > 0 ->
        left--;
#ifdef MUTANT_NO_COMPARE
        atomic { before = FROM(word); wait = WAIT(before) }
        atomic {
#else
        atomic {
            before = FROM(word);
            wait = WAIT(before);
#endif
            if
            :: wait > LONGEST -> denied(); due[p] = NOT_WAITING
            :: else ->
#ifndef MUTANT_PAID_AFTERWARDS
                store(before);
#endif
                due[p] = now + wait
            fi
        }
end_of_time:
        if
        :: atomic { due[p] != NOT_WAITING && now >= due[p] ->
#ifdef MUTANT_PAID_AFTERWARDS
            store(before);
#endif
#ifdef WITNESS_WAITED
            WITNESS_seen = wait == LONGEST;
            assert(!WITNESS_seen);
#endif
            begin_call();
            due[p] = NOT_WAITING }
        :: atomic { due[p] != NOT_WAITING && kills < KILLS -> kills++; due[p] = NOT_WAITING; left = 0 }
        :: due[p] == NOT_WAITING
        fi
    :: else -> break
    od
}

proctype clock() {
    byte p;
    bool may;
    do
    :: now < END ->
        atomic {
            may = true;
            for (p : 0 .. P - 1) { may = may && due[p] > now }
            if
            :: may -> now++; level = MORE(level, 1) - 1; owed = MORE(owed, 1) - 1
            :: else
            fi
        }
    :: else -> break
    od
}

#ifdef FORGER
active proctype forger() {
    if
    :: word = 0
    :: word = 200
    fi
}
#endif

init {
    byte p;
    atomic {
        for (p : 0 .. P - 1) { due[p] = NOT_WAITING }
        for (p : 0 .. P - 1) { run caller(p) }
        run clock()
    }
}
