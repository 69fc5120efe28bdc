// The shares of three children of one parent, as tools/common/shares/share_mover.cpp moves them while programs charge as
// provider/charging/context.hpp does. Each child has its own ledger and limits; they share no memory with each other.
//
// A charger raises its gate, then compares the generation, and backs out when it changed. The mover stores a lower share,
// bumps the generation, then reads the gate, and hands on what is free by that reading. Chargers are stopped and the mover
// killed after any step; a new mover comes after a killed one. A charge is 1.
// With OWNER, one of the two that charge is the one with a guarantee.
//
// held[c]: what chargers of c have charged for good. I1: the sum over the children of max(share, held) is never above
// TOTAL. A gate may be higher for a moment, while its charger backs out: that is no object. I4: nobody is denied who holds less
// than its guarantee. I3: nobody backs out for ever.

#ifndef TOTAL
#define TOTAL 4
#endif
#ifndef CHARGES
#define CHARGES 2  // that each charger tries
#endif
#ifndef MOVES
#define MOVES 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#define C 3
#define GUARANTEE(c) (c == 2 -> 1 : 0)  // reserved, and never lent
#ifdef MUTANT_LEND_GUARANTEE
#define KEPT(c) 0
#else
#define KEPT(c) GUARANTEE(c)
#endif

byte share[C];
byte generation[C];
byte gate[C];
byte held[C];
byte kills;
bool I1_broken, I4_broken, WITNESS_seen;  // for the names in reports
bool handed_on;  // a share that was free was given to another child

#define MORE(a, b) (a > b -> a : b)
#define taken(c) MORE(share[c], held[c])
#define SUM (taken(0) + taken(1) + taken(2))

// What is promised is kept at every step of everybody.
inline check() {
    I1_broken = SUM > TOTAL;
    assert(!I1_broken);
    assert(gate[0] >= held[0] && gate[1] >= held[1] && gate[2] >= held[2]);
}

proctype charger(byte c) {
    byte left = CHARGES, limit, seen, has;
    do
    :: left > 0 ->
        left--;
#ifdef MUTANT_SEEN_ONCE
        seen = generation[c];
#endif
again:
#ifdef MUTANT_LIMIT_BEFORE_GENERATION
        limit = share[c];
        seen = generation[c];
#else
#ifndef MUTANT_SEEN_ONCE
        seen = generation[c];
#endif
        limit = share[c];
#endif
#ifdef MUTANT_COMPARE_BEFORE_GATE
        if
        :: generation[c] != seen -> goto again
        :: else
        fi;
#endif
        if
        :: atomic { gate[c] + 1 <= limit -> gate[c]++ }
        :: atomic {
            gate[c] + 1 > limit ->
            I4_broken = held[c] < GUARANTEE(c);
            assert(!I4_broken);
            goto denied
        }
        fi;
#if defined(MUTANT_COMPARE_BEFORE_GATE) || defined(MUTANT_NO_COMPARE)
        atomic { held[c]++; has++; check() }
#else
        if
        :: atomic { generation[c] == seen -> held[c]++; has++; check() }
#ifdef MUTANT_NO_BACK_OUT
        :: atomic { generation[c] != seen -> goto again }
#else
        :: atomic { generation[c] != seen -> gate[c]-- }
accept_backs_out:
            goto again
#endif
        fi;
#endif
denied:
        skip
    :: atomic { has > 0 -> has--; held[c]-- } gate[c]--
    :: break
    :: atomic { true -> goto stopped }
    od;
stopped:
    skip
}

inline die() {
    if
    :: kills < KILLS -> kills++; goto restart
    :: true
    fi
}

// One that does not know what the one before it stored without a bump, so it bumps all first.
proctype mover() {
    byte moves = MOVES, from, to, sum, at, before;
restart:
    skip;
    d_step { from = 0; to = 0; sum = 0; at = 0; before = 0 }
#ifndef MUTANT_NO_BUMP_AT_START
    generation[0]++;
    die();
    generation[1]++;
    die();
    generation[2]++;
    die();
#endif
    do
    :: moves > 0 ->
        moves--;
        if
        :: from = 0; to = 1
        :: from = 1; to = 0
        :: from = 2; to = 0
        fi;
        before = share[from];
#ifdef MUTANT_RAISE_FIRST
        if
        :: before > KEPT(from) -> atomic { share[to] = share[to] + 1; check() } generation[to]++
        :: else
        fi;
#endif
#ifdef MUTANT_READ_FIRST
        at = gate[from];
#endif
        if
        :: before > KEPT(from) -> share[from] = before - 1
        :: else
        fi;
        die();
#ifdef MUTANT_READ_BEFORE_BUMP
        at = gate[from];
#endif
        generation[from]++;
        die();
#if !defined(MUTANT_READ_FIRST) && !defined(MUTANT_READ_BEFORE_BUMP)
        at = gate[from];
#endif
        // The others are bounded by their shares; their gates are read one after the other. To die where nothing was
        // written since is to die after the write before.
        sum = MORE(share[from], at);
        sum = sum + MORE(share[to], gate[to]);
        sum = sum + MORE(share[3 - from - to], gate[3 - from - to]);
#ifndef MUTANT_RAISE_FIRST
        if
        :: sum < TOTAL ->
            atomic { share[to] = share[to] + 1; handed_on = true; check() }
            die();
            generation[to]++;
            die()
        :: else
        fi
#endif
    :: else -> break
    od;
#ifdef WITNESS_HANDED_ON
    WITNESS_seen = handed_on && held[1] == 2;
    assert(!WITNESS_seen);
#endif
}

init {
    d_step {
        share[0] = 2;
        share[1] = 1;
        share[2] = 1;
    }
    atomic {
        run charger(0);
#ifdef OWNER
        run charger(2);
#else
        run charger(1);
#endif
        run mover();
    }
}
