// One pool of a cluster over two nodes: what tools/cluster and tools/common/cluster/ceilings.cpp do, with the names that they have.
//
// One process picks the next step: any step that is possible, in any order, is one option of its loop.
//   etcd         each transaction is one step. Up to two writes are under way at once: that of a leader which stopped waiting for an answer,
//                or was deposed, and the next one. A write lands when its comparisons still hold: `landed` writes change the turn, so that
//                every other one fails.
//   coordinator  the leader has reports in its memory; a successor has none.
//   node         takes a delivery, which may be old, and come after a boot; then its agent reports. A report is under way until it
//                arrives; a later one of the same node, on a later stream, makes it worthless.
//   faults       a boot, a new leader, a lower limit, a restored backup, a forgotten node, a pool that is added again, a clone.
//
// I1: what both nodes use or may use is at most the limit, or what was held when that was lowered.
// I2: no write raises the sum of what is booked above the limit, or above what it was.
// I4: when nothing is under way and no fault comes any more, a node that wants everything gets it once the other has nothing.
// MUTANT_... is a fault; each must be found.

#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef WRITES
#define WRITES 3
#endif
#ifndef BOOTS
#define BOOTS 0
#endif
#ifndef LEADERS
#define LEADERS 1
#endif
#ifndef LOWERED
#define LOWERED 0
#endif
#ifndef RESTORES
#define RESTORES 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef ADDED_AGAIN
#define ADDED_AGAIN 0
#endif
#ifndef CLONES
#define CLONES 0
#endif
#define unknown 9
#define larger(a, b) ((a) > (b) -> (a) : (b))

byte limit = LIMIT, bound = LIMIT, forgotten, epoch = 1, turn, pool = 1;
// A node's key.
byte key_epoch[2] = 1, key_number[2], key_boot[2], key_pool[2] = 1, ceiling[2], held_in_key[2];
// The leader's memory.
bool reported[2];
byte report_epoch[2], report_number[2], report_boot[2], report_bound[2], report_pool[2];
// Nodes. A new boot has nothing in force, by the policy's key `cluster`.
byte boot[2], boots = 2, use[2], in_force[2], taken_epoch[2] = 1, taken_number[2], told_pool[2] = 1;
byte clone_in_force;
// Under way.
bool writing[2], deposed[2];
byte write_node[2], write_ceiling[2], write_held[2], write_boot[2], write_number[2], write_pool[2];
bool sending[2], delivering[2];
byte sent_epoch[2], sent_number[2], sent_boot[2], sent_bound[2], sent_pool[2];
byte delivery_cluster_epoch[2], delivery_epoch[2], delivery_number[2], delivery_boot[2], delivery_ceiling[2], delivery_pool[2];
// A backup.
bool backed_up;
byte backup_epoch[2], backup_number[2], backup_boot[2], backup_ceiling[2], backup_held[2], backup_turn;
byte writes = WRITES, i, j, v, h, others, before, now;
bool I1_broken, I2_broken, I4_broken, WITNESS_seen;

#define bound_of(n) larger(use[n], in_force[n])
#define is_current(n) (key_boot[n] == report_boot[n] && key_epoch[n] == epoch)
#define has_acknowledged(n) (is_current(n) && report_number[n] == key_number[n])

#define other_boot(n) report_bound[n]
#ifdef MUTANT_POOL_ADDED_AGAIN
#define other_pool(n) 0
#else
#define other_pool(n) (has_acknowledged(n) && report_pool[n] == pool -> report_bound[n] : unknown)
#endif
#ifdef MUTANT_HELD_FALLS_UNACKNOWLEDGED
#define newest(n) larger(ceiling[n], report_bound[n])
#else
#define newest(n) (has_acknowledged(n) -> larger(ceiling[n], report_bound[n]) : held_in_key[n])
#endif
#define booked(n) (key_epoch[n] != epoch || key_pool[n] != pool -> unknown : held_in_key[n])
#define held(n) (!reported[n] -> booked(n) : (report_epoch[n] != epoch -> unknown : \
    (!is_current(n) -> other_boot(n) : (key_pool[n] != pool -> other_pool(n) : newest(n)))))

inline drop_write(s) {
    writing[s] = false; deposed[s] = false; write_node[s] = 0; write_ceiling[s] = 0; write_held[s] = 0; write_boot[s] = 0;
    write_number[s] = 0; write_pool[s] = 0
}
inline drop_report(n) { sending[n] = false; sent_epoch[n] = 0; sent_number[n] = 0; sent_boot[n] = 0; sent_bound[n] = 0; sent_pool[n] = 0 }
inline drop_delivery(n) {
    delivering[n] = false; delivery_cluster_epoch[n] = 0; delivery_epoch[n] = 0; delivery_number[n] = 0; delivery_boot[n] = 0;
    delivery_ceiling[n] = 0; delivery_pool[n] = 0
}
inline judge() {
    I1_broken = bound_of(0) + bound_of(1) + clone_in_force > bound + forgotten;
    assert(!I1_broken)
}
inline lower_bound() {
    if
    :: booked(0) != unknown && booked(1) != unknown && larger(limit, booked(0) + booked(1)) < bound -> bound = larger(limit, booked(0) + booked(1))
    :: else
    fi
}

// CeilingRecord::take, then put.
inline take(n) {
    if
    :: delivery_cluster_epoch[n] > taken_epoch[n] ->
        taken_epoch[n] = delivery_cluster_epoch[n];
        taken_number[n] = 0
    :: else
    fi;
    if
#ifdef MUTANT_OTHER_BOOT_TAKEN
    :: delivery_epoch[n] == taken_epoch[n] && delivery_number[n] > taken_number[n] ->
#else
    :: delivery_epoch[n] == taken_epoch[n] && delivery_number[n] > taken_number[n] && delivery_boot[n] == boot[n] ->
#endif
        in_force[n] = delivery_ceiling[n]; taken_number[n] = delivery_number[n]; told_pool[n] = delivery_pool[n]
    :: delivery_epoch[n] == taken_epoch[n] && delivery_number[n] > taken_number[n] && delivery_boot[n] == 0 ->
        in_force[n] = 0; taken_number[n] = delivery_number[n]   // forgotten
    :: else -> if :: delivery_cluster_epoch[n] == taken_epoch[n] -> told_pool[n] = larger(told_pool[n], delivery_pool[n]) :: else fi
    fi
}
// A delivery of what the key has, from the beginning to its end.
inline fill_delivery(n) {
    delivery_cluster_epoch[n] = epoch; delivery_epoch[n] = key_epoch[n]; delivery_number[n] = key_number[n]; delivery_boot[n] = key_boot[n];
    delivery_ceiling[n] = (key_pool[n] == pool -> ceiling[n] : in_force[n]); delivery_pool[n] = pool
}
inline arrive(n, e, m, b, value, p) {
    drop_report(n);     // it came by an older stream
    reported[n] = true; report_epoch[n] = e; report_number[n] = m; report_boot[n] = b; report_bound[n] = value; report_pool[n] = p
}
inline put_key(n, b, m, c, g, p) { key_epoch[n] = epoch; key_boot[n] = b; key_number[n] = m; ceiling[n] = c; held_in_key[n] = g; key_pool[n] = p }
inline next_turn() { turn++; drop_write(0); drop_write(1) }

#define fits(n) (h == unknown -> false : (is_current(n) && key_pool[n] == pool && v <= ceiling[n] -> true : \
    (!(is_current(n) && key_pool[n] == pool) && v <= h -> true : others != unknown && larger(v, h) + others <= limit)))

active proctype cluster() {
    byte leaders = LEADERS, reboots = BOOTS, lowered = LOWERED, restores = RESTORES, forgets = FORGETS, added = ADDED_AGAIN, clones = CLONES;
    d_step { boot[0] = 1; boot[1] = 2; key_boot[0] = 1; key_boot[1] = 2 }
    do
    // Programs.
    :: atomic { use[0] < in_force[0] -> use[0]++; judge() }
    :: atomic { use[1] < in_force[1] -> use[1]++; judge() }
    :: atomic { use[0] > 0 -> use[0]-- }
    :: atomic { use[1] > 0 -> use[1]-- }

    // A delivery leaves the coordinator; arrives, and may arrive again; or is lost.
    :: atomic {
        if :: !delivering[0] -> i = 0 :: !delivering[1] -> i = 1 fi;
        fill_delivery(i);
        if
        :: delivery_cluster_epoch[i] == taken_epoch[i] && delivery_number[i] == taken_number[i] && told_pool[i] == pool -> drop_delivery(i)
        :: else -> delivering[i] = true
        fi;
        i = 0
    }
    :: atomic { if :: delivering[0] -> i = 0 :: delivering[1] -> i = 1 fi; take(i); judge(); if :: drop_delivery(i) :: skip fi; i = 0 }
    :: atomic { if :: delivering[0] -> i = 0 :: delivering[1] -> i = 1 fi; drop_delivery(i); i = 0 }
#ifdef MUTANT_ACKNOWLEDGED_BEFORE_LOWERED
    :: atomic {
        if :: delivering[0] && delivery_boot[0] == boot[0] && delivery_number[0] > taken_number[0] -> i = 0
           :: delivering[1] && delivery_boot[1] == boot[1] && delivery_number[1] > taken_number[1] -> i = 1 fi;
        v = larger(use[i], delivery_ceiling[i]);
        arrive(i, taken_epoch[i], delivery_number[i], boot[i], v, pool); i = 0; v = 0
    }
#endif

    // A report leaves a node; arrives at whoever leads; or is lost.
    :: atomic {
        if :: !sending[0] -> i = 0 :: !sending[1] -> i = 1 fi;
        sending[i] = true; sent_epoch[i] = taken_epoch[i]; sent_number[i] = taken_number[i]; sent_boot[i] = boot[i];
        sent_bound[i] = bound_of(i); sent_pool[i] = told_pool[i]; i = 0
    }
    :: atomic {
        if :: sending[0] -> i = 0 :: sending[1] -> i = 1 fi;
        reported[i] = true; report_epoch[i] = sent_epoch[i]; report_number[i] = sent_number[i]; report_boot[i] = sent_boot[i];
        report_bound[i] = sent_bound[i]; report_pool[i] = sent_pool[i]; drop_report(i); i = 0
    }
    :: atomic { if :: sending[0] -> i = 0 :: sending[1] -> i = 1 fi; drop_report(i); i = 0 }
    // One that overtakes another: by a later stream.
    :: atomic {
        if :: i = 0 :: i = 1 fi;
        v = bound_of(i);
        arrive(i, taken_epoch[i], taken_number[i], boot[i], v, told_pool[i]);
        v = 0;
        i = 0
    }

    // The leader decides: the plan wants any ceiling. It has one write under way, unless it stopped waiting for another.
    :: atomic {
        writes > 0 && (!writing[0] || !writing[1]) ->
        writes--;
        if :: i = 0 :: i = 1 fi;
        if :: v = 0 :: v = 1 :: v = 2 fi;
        h = held(i); others = held(1 - i);
#ifdef MUTANT_RAISE_BEFORE_ACKNOWLEDGEMENT
        others = ceiling[1 - i];
#endif
        if
        :: reported[i] && report_epoch[i] == epoch && fits(i) ->
            j = (writing[0] -> 1 : 0);
            writing[j] = true; write_node[j] = i; write_ceiling[j] = v; write_boot[j] = report_boot[i]; write_number[j] = turn + 1; write_pool[j] = pool;
#ifdef MUTANT_REPORT_COUNTED
            write_held[j] = report_bound[i]
#else
            write_held[j] = larger(v, h)
#endif
            ;
            // What the other acknowledged is in the same transaction (Permit: others by what etcd has after it).
            write_held[j] = write_held[j] + 16 * (others == unknown -> 15 : others)
        :: else
        fi;
        i = 0; j = 0; v = 0; h = 0; others = 0
    }
    :: atomic {
        if :: writing[0] -> j = 0 :: writing[1] -> j = 1 fi;
        i = write_node[j];
        before = (booked(0) == unknown || booked(1) == unknown -> 99 : booked(0) + booked(1));
        if
        :: write_held[j] / 16 != 15 && booked(1 - i) != unknown -> held_in_key[1 - i] = write_held[j] / 16
        :: else
        fi;
        v = write_ceiling[j]; h = write_held[j] % 16; others = write_boot[j]; now = write_number[j];
        put_key(i, others, now, v, h, write_pool[j]);
#ifdef MUTANT_NO_TURN
        drop_write(j);
        turn++;
        if :: writing[1 - j] && write_node[1 - j] == i -> drop_write(1 - j) :: else fi;    // the node's own key
#else
        next_turn();
#endif
        now = (booked(0) == unknown || booked(1) == unknown -> 0 : booked(0) + booked(1));
        I2_broken = before != 99 && now > larger(limit, before) + forgotten;
        assert(!I2_broken);
        lower_bound();
        i = 0; j = 0; v = 0; h = 0; others = 0; before = 0; now = 0
    }
    :: atomic { if :: writing[0] -> drop_write(0) :: writing[1] -> drop_write(1) fi }

    // Another leader. The writes of the one before fail, since they compare its key.
    :: atomic {
        leaders > 0 -> leaders--;
        reported[0] = false; reported[1] = false; report_epoch[0] = 0; report_epoch[1] = 0; report_number[0] = 0; report_number[1] = 0;
        report_boot[0] = 0; report_boot[1] = 0; report_bound[0] = 0; report_bound[1] = 0; report_pool[0] = 0; report_pool[1] = 0;
#ifndef MUTANT_NO_FENCE
        drop_write(0); drop_write(1);
#endif
        skip
    }
#if BOOTS > 0
    :: atomic {
        reboots > 0 -> reboots--;
        if :: i = 0 :: i = 1 fi;
        boots++; boot[i] = boots; use[i] = 0; in_force[i] = 0; taken_epoch[i] = 0; taken_number[i] = 0; told_pool[i] = 0; i = 0
    }
#endif
#if LOWERED > 0
    :: atomic {
        lowered > 0 -> lowered--; limit = 1; next_turn()
    }
#endif
#if RESTORES > 0
    :: atomic {
        !backed_up -> backed_up = true; backup_turn = turn;
        for (i : 0 .. 1) { backup_epoch[i] = key_epoch[i]; backup_number[i] = key_number[i]; backup_boot[i] = key_boot[i]; backup_ceiling[i] = ceiling[i]; backup_held[i] = held_in_key[i] }
        i = 0
    }
    :: atomic {
        backed_up && restores > 0 -> restores--; turn = backup_turn;
        for (i : 0 .. 1) { key_epoch[i] = backup_epoch[i]; key_number[i] = backup_number[i]; key_boot[i] = backup_boot[i]; ceiling[i] = backup_ceiling[i]; held_in_key[i] = backup_held[i]; reported[i] = false; report_epoch[i] = 0; report_number[i] = 0; report_boot[i] = 0; report_bound[i] = 0; report_pool[i] = 0 }
        i = 0; drop_write(0); drop_write(1);
        epoch++
    }
#endif
#if FORGETS > 0
    :: atomic {
        // The promise is for a node that is gone: what it may hold comes on top.
        forgets > 0 -> forgets--;
        if :: i = 0 :: i = 1 fi;
        forgotten = larger(bound_of(i), (key_epoch[i] == epoch -> held_in_key[i] : 0));
        next_turn();
        put_key(i, 0, turn, 0, 0, pool);
        reported[i] = false; report_epoch[i] = 0; report_number[i] = 0; report_boot[i] = 0; report_bound[i] = 0; report_pool[i] = 0; i = 0
    }
#endif
#if ADDED_AGAIN > 0
    :: atomic { added > 0 -> added--; pool++; next_turn() }
#endif
#if CLONES > 0
    :: atomic {
        clones > 0 -> clones--;
#ifdef MUTANT_CLONE_ADMITTED
        arrive(0, epoch, 0, 9, 0, pool);
#endif
        skip
    }
#endif
    // I4: all is answered, all is freed; the first node gets what the second gives up.
    :: atomic {
        writes == 0 ->
        next_turn();
        for (i : 0 .. 1) {
            drop_report(i); drop_delivery(i); use[i] = 0;
            fill_delivery(i); take(i); drop_delivery(i);
            v = bound_of(i);
            arrive(i, taken_epoch[i], taken_number[i], boot[i], v, told_pool[i])
        }
        for (i : 0 .. 1) {
            h = held(i);
            I4_broken = h == unknown;
            assert(!I4_broken);
            next_turn();
            v = 0;
            put_key(i, boot[i], turn, v, h, pool);
            fill_delivery(i); take(i); drop_delivery(i);
            judge();
            v = bound_of(i);
            arrive(i, taken_epoch[i], taken_number[i], boot[i], v, told_pool[i]);
            I4_broken = held(i) != 0;
            assert(!I4_broken)
        }
#ifdef WITNESS_GIVEN_BACK
        WITNESS_seen = true;
        assert(!WITNESS_seen);
#endif
        break
    }
    od
}
