// Rates: how much a second may be created and registered, by the generic cell rate algorithm, as in the provider (shm/ledger/pace.hpp).
// An object counts when it is made, whichever way its request came. Nobody can be made to wait here: from twice the burst on requests are
// refused, which programs that wait in the provider do not come to.
#pragma once

#include "guard_charge.bpf.h"

enum { most_pace_tries = 8 };

static __always_inline bool has_paces(void) {
    const struct guard_row *all = all_rows();
    return all && all->paced;
}

static __always_inline u64 cost_of(const struct guard_pace *pace, u64 amount) {
    u64 most = (pace->limit_ns << guard_pace_shift) / pace->unit;
    return amount < most ? amount * pace->unit >> guard_pace_shift : pace->limit_ns;
}

// The row that has the rate: a process's row takes it from its tenant's processes.
static __always_inline const struct guard_row *bound_of(u32 row) {
    const struct guard_row *of = row_at(row);
    return of && row < process_rows ? row_at(of->process_class) : of;
}

// 1: what was made before is not paid for until too late.
__attribute__((noinline)) int outpaces(u32 row, u32 rate, u64 now) {
    const struct guard_row *of = row_at(row), *bound = bound_of(row);
    rate = modulo(rate, guard_rates);
    if (!of || !bound || !bound->pace[rate].unit) return 0;
    u64 limit = bound->pace[rate].limit_ns;
    return limit == 0 || of->pace[rate].paid > now + limit;
}

// When several threads pay at once, one of them may stay uncounted.
__attribute__((noinline)) int pay(u32 row, u32 rate, u64 amount, u64 now) {
    struct guard_row *of = row_at(row);
    const struct guard_row *bound = bound_of(row);
    rate = modulo(rate, guard_rates);
    if (!of || !bound || !bound->pace[rate].unit) return 0;
    u64 *paid = &of->pace[rate].paid, cost = cost_of(&bound->pace[rate], amount), latest = now + 2 * bound->pace[rate].limit_ns;
    for (u32 i = 0; i < most_pace_tries; ++i) {
        u64 before = *(volatile u64 *)paid, after = (before > now ? before : now) + cost;
        if (after > latest) after = latest;
        if (__sync_val_compare_and_swap(paid, before, after) == before) break;
    }
    return 0;
}

static __always_inline u32 total_of(u32 row) {
    const struct guard_row *of = row_at(row);
    return of && row >= process_rows ? of->total : 0;
}

// + 1; 0: none.
__attribute__((noinline)) int outpaced_rate(u32 row, u64 bytes, u64 now) {
    u32 total = total_of(row);
    if (outpaces(row, 0, now) || (total && outpaces(total, 0, now))) return 1;
    if (bytes && (outpaces(row, 1, now) || (total && outpaces(total, 1, now)))) return 2;
    return 0;
}

__attribute__((noinline)) int pay_all(u32 row, u64 bytes, u64 now) {
    u32 total = total_of(row);
    pay(row, 0, 1, now);
    if (total) pay(total, 0, 1, now);
    if (bytes) pay(row, 1, bytes, now);
    if (bytes && total) pay(total, 1, bytes, now);
    return 0;
}

// 0, or the errno to refuse with.
__attribute__((noinline)) int look_at_pace(u32 file, u64 bytes) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = it ? stamp_in_force(it) : 0;
    u64 now = bpf_ktime_get_ns();
    if (!stamp || stamp->exempt || guard_mode != guard_deny) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        u32 row = stamp->rows[i], rate;
        struct guard_row *of = row_at(row);
        if (row == 0 || !of) break;
        if (of->enforced && (rate = outpaced_rate(row, bytes, now)) != 0) return refuse(file, row, guard_resources + rate - 1, bytes);
    }
    return 0;
}

// 1: an object that was just made is one too many, and is counted as refused; it counts all the same.
__attribute__((noinline)) int count_pace(u32 file, u64 bytes) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = it ? stamp_in_force(it) : 0;
    u64 now = bpf_ktime_get_ns();
    int too_many = 0;
    if (!stamp || stamp->exempt) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        u32 row = stamp->rows[i], rate;
        struct guard_row *of = row_at(row);
        if (row == 0 || !of) break;
        rate = outpaced_rate(row, bytes, now);
        too_many |= rate && of->enforced;
        if (rate) __sync_fetch_and_add(rate == 1 ? &of->refused[guard_commands] : &of->refused[guard_registered], 1);
        pay_all(row, bytes, now);
    }
    return too_many;
}
