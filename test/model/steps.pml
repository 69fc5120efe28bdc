// The steps, in the order of the code's files. A process does them one at a time, from `pc`; where two
// have the same name, either may come. Those AT a place are the code's, which says failpoint("place") right
// after each (test/model/names.sh compares). A LOOK reads one word of shared memory and has no name in
// the code but its function's. MEANWHILE is what the program or the kernel does.

#define AT(place) :: d_step { pc == place -> TELL
#define LOOK(place) :: d_step { pc == place -> TELL
#define MEANWHILE(place) :: d_step { pc == place -> TELL
#define THEN(place) pc = place }

inline steps() {
    do
    // ---- ledger.cpp: claim, device_index
    MEANWHILE(born)
        forget_snapshot();
        if
        :: CLAIMS -> doing = JOIN; reap()
        :: else -> has_slot = true; pc = appear
        fi }
    LOOK(claim_look)
        if :: live[n] -> claim_on() :: else -> pc = claim_lock fi }
    AT(claim_lock)
        if :: lock[n] == 0 -> lock[n] = BIT(id) | CLAIMS_AS; pc = claim_check :: else -> claim_on() fi }
#ifdef MUTANT_CLAIM_UNCHECKED
    LOOK(claim_check) THEN(claim_own)
#else
    LOOK(claim_check) pc = (live[n] -> claim_unlock : claim_own) }
#endif
    MEANWHILE(claim_unlock) lock[n] = 0; claim_on() }
    AT(claim_own) lock[n] = BIT(id); THEN(claim_count)
    AT(claim_count) claims++; THEN(claim_used)
    AT(claim_used) slots_used = MAX(slots_used, n + 1); THEN(claim_live)
    AT(claim_live) live[n] = true; slot_of[id] = n; owners[n]++; has_slot = true; n = 0; THEN(appear)
    AT(appear) devices_used = MAX(devices_used, DEVICE(id) + 1); go_on() }

    // ---- charge.cpp: full_scope, full_total
    LOOK(fits_process) h_c = EXCEEDS(USAGE(slot_of[id], CELL(DEVICE(id), k)), LIMIT_PROCESS); fitted(PROCESS) }
    LOOK(fits_tenant) h_c = EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT_OF(k)); fitted(TENANT) }
    LOOK(fits_process_total && j < devices_used) sum = sum + USAGE(slot_of[id], CELL(j, k)); j++ }
    LOOK(fits_process_total && j >= devices_used)
        h_c = EXCEEDS(sum - already, LIMIT_PROCESS_TOTAL); fitted(PROCESS_TOTAL) }
    LOOK(fits_tenant_total && j < devices_used) sum = sum + AMOUNT(gates[CELL(j, k)]); j++ }
    LOOK(fits_tenant_total && j >= devices_used)
        h_c = EXCEEDS(sum - already, LIMIT_TENANT_TOTAL); fitted(TENANT_TOTAL) }

    // ---- steps.hpp: InFlight, raise, lower
    LOOK(look_pause) word = asked; pc = (asked == 0 -> begin : hold_back) }
    AT(hold_back && PATIENCE_OVER) asked = (asked == word -> 0 : asked); word = 0; THEN(begin)
    AT(begin)
        OPS_ADD(slot_of[id], OPS_BEGIN);
        working_in[id] = slot_of[id] + 1;
        if :: doing == CHARGE -> pc = FIRST_RAISE :: else -> uncharge_on() fi }
    AT(raise_gate)
#ifdef MUTANT_SLOT_BEFORE_GATE
        if
        :: EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT_OF(k)) -> roll_back(TENANT, k + 1)
        :: else ->
            gates[CELL(DEVICE(id), k)] = gates[CELL(DEVICE(id), k)] + 1;
            already = true;
            fits_after(TENANT)
        fi
#else
        if
        :: EXCEEDS(AMOUNT(gates[CELL(DEVICE(id), k)]), LIMIT_TENANT_OF(k)) -> roll_back(TENANT, k)
        :: else -> gates[CELL(DEVICE(id), k)] = gates[CELL(DEVICE(id), k)] + 1; pc = raise_slot
        fi
#endif
        }
    AT(raise_slot)
        h_own = EXCEEDS(USAGE(slot_of[id], CELL(DEVICE(id), k)), LIMIT_PROCESS);
        USAGE(slot_of[id], CELL(DEVICE(id), k)) = USAGE(slot_of[id], CELL(DEVICE(id), k)) + 1;
        check_covered(CELL(DEVICE(id), k));
#ifdef MUTANT_SLOT_BEFORE_GATE
        pc = raise_gate
#else
        already = true;
#ifdef MUTANT_NO_SECOND_LOOK
        fits_after(TENANT_TOTAL)
#else
        if :: h_own -> roll_back(PROCESS, k + 1) :: else -> fits_after(TENANT) fi
#endif
#endif
        }
    AT(lower_slot)
        taken = MIN(USAGE(LOWER_SLOT, LOWER_CELL), LOWER_MOST);
        USAGE(LOWER_SLOT, LOWER_CELL) = USAGE(LOWER_SLOT, LOWER_CELL) - taken;
#ifdef MUTANT_GATE_FIRST_ON_UNCHARGE
        lowered()
#else
        pc = lower_gate
#endif
        }
    AT(lower_gate)
#ifdef MUTANT_GATE_FIRST_ON_UNCHARGE
        gates[LOWER_CELL] = gates[LOWER_CELL] - MIN(USAGE(LOWER_SLOT, LOWER_CELL), LOWER_MOST);
        pc = lower_slot
#else
        gates[LOWER_CELL] = gates[LOWER_CELL] - taken;
        h_own = LOWER_CELL;
        check_covered(h_own);
        lowered()
#endif
        }
    AT(end)
        OPS_ADD(slot_of[id], OPS_END);
        working_in[id] = 0;
        if
        :: doing == CHARGE && denied != NONE -> i = 0; denied_once()
        :: doing == CHARGE && denied == NONE -> held[id] = BIT(R) - 1; check_limits(); go_on()
        :: else -> go_on()
        fi }

    // ---- charge.cpp: own_usage_proves
    LOOK(own_ops)
        looks = ops[slot_of[id]];
        j = (denied == PROCESS -> DEVICE(id) : 0);
        look_really();
        THEN(own_used)
    LOOK(own_used && denied == PROCESS) sum = USAGE(slot_of[id], CELL(j, k)); THEN(own_ops_again)
    LOOK(own_used && denied != PROCESS && j < devices_used) sum = sum + USAGE(slot_of[id], CELL(j, k)); j++ }
    LOOK(own_used && denied != PROCESS && j >= devices_used) THEN(own_ops_again)
    LOOK(own_ops_again)
        h_c = (looks & IN_FLIGHT_MASK) == 0 && ops[slot_of[id]] == looks && EXCEEDS(sum, LIMIT_OF(denied, k));
        if :: h_c -> proved() :: else -> prove_again() fi }

    // ---- reap.cpp: observe
    LOOK(count_devices) devices = devices_used; pc = (CLAIMS -> count_slots : first_look) }
    LOOK(count_slots) slots = slots_used; THEN(count_claims)
    LOOK(count_claims)
        claims_seen = claims;
        if :: n < slots -> pc = first_look :: else -> n = 0; pc = read_gates fi }
    AT(first_look && (ops[n] & IN_FLIGHT_MASK) != 0) no_view() }
    AT(first_look && (ops[n] & IN_FLIGHT_MASK) == 0)
        looks = looks + ops[n];
        first_look_on() }
    LOOK(look_live)
        lives = lives | (live[n] -> BIT(n) : 0);
        look_live_on() }
    LOOK(look_used)
        h_c = ((CLAIMS -> (lives & BIT(n)) != 0 : live[n]) -> USAGE(n, CELL(j, k)) : 0);
        snapshot_used[j] = snapshot_used[j] + h_c;
        holders = holders | (h_c > 0 && doing == PROVE -> BIT(n) : 0);
        look_used_on() }
    AT(read_gates)
        if :: j == 0 && doing == PROVE -> look_really() :: else -> skip fi;
        snapshot_gate[j] = gates[CELL(j, k)];
        j++;
        if :: j == GATES_READ -> j = 0; second_look_from(MINE(0)) :: else -> skip fi }
    LOOK(second_look) looks = looks - ops[n]; second_look_from(n + 1 + MINE(n + 1)) }
    LOOK(recount_slots && slots_used != slots) no_view() }
    LOOK(recount_slots && slots_used == slots)
        if :: D > 1 -> pc = recount_devices :: else -> viewed() fi }
    LOOK(recount_devices && devices_used != devices) no_view() }
    LOOK(recount_devices && devices_used == devices) THEN(count_again)
    LOOK(count_again) viewed() }
    AT(pause) asked = id + 1; asking = true; observe() }
    AT(go_ahead)
        asked = (asked == id + 1 -> 0 : asked);
        asking = false;
        if :: seen -> seen = false; use_view() :: else -> not_proved() fi }

    // ---- ledger_reap.cpp: correct, all_alive
    AT(correct)
        if
        :: SAME_TAG(gates[CELL(i, k)], snapshot_gate[i]) ->
#ifdef WITNESS_CORRECTED
            assert(doing == JUDGE || WITNESS_seen);
#endif
            gates[CELL(i, k)] = CORRECTED(gates[CELL(i, k)], i);
            check_covered(CELL(i, k))
        :: else -> skip
        fi;
        sum = sum + snapshot_used[i];
        i++;
        correct_from() }
    LOOK(alive_lock && !IS_OWNERS(lock[n])) not_proved() }
    LOOK(alive_lock && IS_OWNERS(lock[n]))
        if :: CLAIMS -> pc = alive_state :: else -> n++; alive_from() fi }
    LOOK(alive_state)
        if :: live[n] -> n++; alive_from() :: else -> not_proved() fi }
#ifdef MUTANT_CLAIMS_UNCOUNTED
    LOOK(alive_claims) proved() }
#else
    LOOK(alive_claims)
        if :: claims == claims_seen -> proved() :: else -> not_proved() fi }
#endif

    // ---- ledger_reap.cpp: reap, empty_slot
    LOOK(reap_look && CLAIMS)
        if :: t < slots_used && live[t] -> pc = reap_lock :: else -> t++; reap_from() fi }
    AT(reap_lock)
        if
        :: FREE_TO_REAP(t) -> lock[t] = lock[t] | REAPS_AS; pc = reap_check
        :: !FREE_TO_REAP(t) && doing == RETIRE -> t = 0; pc = finished
        :: !FREE_TO_REAP(t) && doing != RETIRE -> t++; reap_from()
        fi }
    LOOK(reap_check) pc = (live[t] -> FIRST_EMPTY : reap_unlock) }
    LOOK(reap_look && !CLAIMS && live[t] && FREE_TO_REAP(t)) lock[t] = lock[t] | REAPS_AS; THEN(FIRST_EMPTY)
    LOOK(reap_look && !CLAIMS && !(live[t] && FREE_TO_REAP(t)) && !WAITS_FOR_REAPER(t)) t++; reap_from() }
    AT(empty_begin)
#ifdef WITNESS_TAKEN_OVER
        assert((ops[t] & IN_FLIGHT_MASK) < 2 || WITNESS_seen);
#endif
        ops[t] = ops[t] + OPS_BEGIN;
        working_in[id] = t + 1;
        emptying = true;
        THEN(empty_load)
    LOOK(empty_load)
        amount = USAGE(t, c);
        if :: amount != 0 -> pc = FIRST_LOWER :: else -> lowered() fi }
    LOOK(empty_read) word = ops[t] | IN_FLIGHT_MASK; c = 0; THEN(empty_end)
    AT(empty_end) ops[t] = word + 1; word = 0; working_in[id] = 0; emptying = false; THEN(LAST_EMPTY)
    AT(empty_free) live[t] = false; freed++; THEN(AFTER_FREE)
    AT(reap_unlock)
        lock[t] = lock[t] & ~REAPS_AS;
        if :: doing == RETIRE -> t = 0; pc = finished :: else -> t++; reap_from() fi }

    // ---- what a process with an object does next
    MEANWHILE(choose) doing = UNCHARGE; amount = held[id]; held[id] = 0; THEN(BEGIN)
    MEANWHILE(choose && R > 1 && held[id] == BIT(R) - 1) doing = UNCHARGE; amount = 1; held[id] = held[id] & ~1; THEN(BEGIN)
    MEANWHILE(choose) THEN(finished)  // it lives on
    MEANWHILE(choose) end_process() } // it exits, as programs do, without closing anything
#ifdef MUTANT_RETIRE_UNDER_CHILD
    MEANWHILE(choose) doing = RETIRE; t = slot_of[id]; THEN(empty_begin)
    AT(let_go) lock[t] = lock[t] & ~BIT(id); leave_slot(); t = 0; THEN(finished)
#else
    // ledger.cpp: retire. The slot stays when a forked child still has the lock.
    MEANWHILE(choose) doing = RETIRE; t = slot_of[id]; THEN(let_go)
    AT(let_go) lock[t] = lock[t] & ~BIT(id); leave_slot(); THEN(reap_lock)
#endif

    // ---- death, stop, the end
    :: d_step { id < P && kills < KILLS && pc != born && pc != choose && pc != dead && pc != finished ->
                printf("process %d is killed before %e\n", id, pc);
                kills++;
                end_process() }
    MEANWHILE(dead && births < BIRTHS) births++; THEN(born)
    MEANWHILE(dead) THEN(finished)
#if STOPS
    :: d_step { id < P && stops < STOPS && pc != dead && pc != finished ->
                printf("process %d stops for ever before %e\n", id, pc);
                stops++;
                resting++;
                forget();
                pc = stopped } -> break
#endif
#ifdef MUTANT_LOCK_BY_DESCRIPTOR
    // The host program closes all descriptors in another thread, and with its file the reaper's lock goes.
    :: d_step { (emptying || pc == empty_begin || pc == empty_free) && lock[t] == (BIT(id) | REAPER) -> lock[t] = 0 }
#endif
    :: d_step { pc == finished -> forget(); resting++ } -> break
    od
}
