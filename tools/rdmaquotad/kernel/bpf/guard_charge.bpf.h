// Charging: what an object takes from each row of its file, whether there is room, and who exceeds a limit anyhow.
#pragma once

#include "guard_waiting.bpf.h"

enum { object_place = guard_object * sizeof(u64), looks_at_excess = 64 };

// What an object of a kind changes in each row, and by how much. Found once for all rows; a figure's place is in bytes.
struct amounts {
    u64 place;        // of its kind, if `counted`
    u64 bytes_place;  // of `bytes`, if there are any
    u64 bytes;
    bool counted, object;
};

static __always_inline struct amounts amounts_of(u32 kind, u64 bytes) {
    bool counted = kind < kind_count;
    u64 place = place_of(kind), of_bytes = bytes_place(kind);
    asm volatile("" : "+r"(place), "+r"(of_bytes));  // so that the verifier sees their bounds in the registers that are used
    place *= sizeof(u64);
    of_bytes *= sizeof(u64);
    asm volatile("" : "+r"(place), "+r"(of_bytes));  // so that they are found once
    return (struct amounts){place, of_bytes, bytes, counted, counted && kind != kind_handle};
}

static __always_inline u64 *figure(u64 *figures, u64 place) { return (u64 *)((char *)figures + place); }
static __always_inline u64 *used_of(u64 *limit) {
    return (u64 *)((char *)limit + offsetof(struct guard_row, used) - offsetof(struct guard_row, limit));
}
static __always_inline u32 named(u64 place) { return place / sizeof(u64) + 1; }

static __always_inline void add(u64 *figures, const struct amounts *it, u64 sign) {
    if (it->counted) __sync_fetch_and_add(figure(figures, it->place), sign);
    if (it->object) __sync_fetch_and_add(&figures[guard_object], sign);
    if (it->bytes) __sync_fetch_and_add(figure(figures, it->bytes_place), sign * it->bytes);
}

static __always_inline bool has_place(struct guard_row *of, u64 place, u64 amount) {
    u64 *limit = figure(of->limit, place);
    return fits(*used_of(limit), amount, *limit);
}

// The resource that the row itself has no room for, + 1; 0: there is room for all. `more` is 0 when the row has taken it.
static __always_inline u32 own_lacks(struct guard_row *of, const struct amounts *it, u64 more) {
    if (it->counted && !has_place(of, it->place, more)) return named(it->place);
    if (it->object && !has_place(of, object_place, more)) return guard_object + 1;
    if (it->bytes && !has_place(of, it->bytes_place, more * it->bytes)) return named(it->bytes_place);
    return 0;
}

// The same of the sum over devices.
__attribute__((noinline)) int total_lacks(u32 row, u32 kind, u64 bytes, u64 more) {
    struct amounts it = amounts_of(kind, bytes);
    u32 lacking = 0;
    if (it.counted && !total_has_room(row, place_of(kind), more)) lacking = place_of(kind) + 1;
    else if (it.object && !total_has_room(row, guard_object, more)) lacking = guard_object + 1;
    else if (bytes && !total_has_room(row, bytes_place(kind), more * bytes)) lacking = bytes_place(kind) + 1;
    return lacking;
}

static __always_inline u32 lacks(struct guard_row *of, u32 row, u32 kind, u64 bytes, u64 more) {
    struct amounts it = amounts_of(kind, bytes);
    u32 lacking = own_lacks(of, &it, more);
    return lacking || !of->total ? lacking : total_lacks(row, kind, bytes, more);
}

// Raises first and compares after, so that of many at once none is allowed too much.
static __always_inline bool take_figure(struct guard_row *of, u64 place, u64 amount) {
    u64 *limit = figure(of->limit, place);
    return fits(__sync_fetch_and_add(used_of(limit), amount), amount, *limit);
}

static __always_inline void put_figure(struct guard_row *of, u64 place, u64 amount) {
    __sync_fetch_and_add(used_of(figure(of->limit, place)), -amount);
}

// All or nothing: 0, or the resource without room, + 1.
static __always_inline u32 take(struct guard_row *of, const struct amounts *it) {
    u32 lacking;
    if (it->counted && !take_figure(of, it->place, 1)) {
        lacking = named(it->place);
        goto no_kind;
    }
    if (it->object && !take_figure(of, object_place, 1)) {
        lacking = guard_object + 1;
        goto no_object;
    }
    if (!it->bytes || take_figure(of, it->bytes_place, it->bytes)) return 0;
    lacking = named(it->bytes_place);
    put_figure(of, it->bytes_place, it->bytes);
no_object:
    if (it->object) put_figure(of, object_place, 1);
no_kind:
    if (it->counted) put_figure(of, it->place, 1);
    return lacking;
}

__attribute__((noinline)) int refuse(u32 file, u32 row, u32 resource, u64 bytes) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    if (of && resource < guard_resources) __sync_fetch_and_add(&of->refused[resource], 1);
    tell_guard(told_refused, file, row, resource, bytes);
    return it ? stamp_in_force(it)->deny_errno : 0;
}

// In a loop that calls nothing, and is unrolled where the compiler can do that, which makes it fast.
static __always_inline void add_to_rows(struct guard_row *all, const struct guard_stamp *stamp, const struct amounts *amounts,
                                        u64 sign) {
    u64 mask = row_mask();
    u32 count = stamp->count;
#pragma clang loop unroll(full)
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= opaque(count)) break;  // else the compiler makes one bound of both, and unrolls nothing
        struct guard_row *of = &all[stamp->rows[i] & mask];
        asm volatile("" : "+r"(of));  // so that it is found once
        add(of->used, amounts, sign);
    }
}

// shift() of a file that waits, or waited just now.
__attribute__((noinline)) int shift_waiting(u64 id, u32 kind, u64 bytes, u64 sign) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows();
    struct guard_file *it = file_at((u32)id);
    bool waits;
    if (!all || !it) return 0;
    waits = begin_waiting(it, (u32)id);
    add_to_rows(all, waiting_or_not(it, waits), &amounts, sign);
    add(held_by(it, waits), &amounts, sign);
    if (waits) leave_waiting(it, (u32)id);
    return 0;
}

// Adds to what the file's rows use, or subtracts by a sign of -1, whatever their limits are.
__attribute__((noinline)) int shift(u64 id, u32 kind, u64 bytes, u64 sign) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows();
    struct guard_file *it = file_at((u32)id);
    if (!all || !it || it->id != id) return 0;  // closed: all was given back
    asm volatile("" : "+r"(it));  // so that it is found once
    if (!has_moved(it)) return shift_waiting(id, kind, bytes, sign);
    if (!amounts.object) {
        add_to_rows(all, &it->stamp, &amounts, sign);
        add(it->held, &amounts, sign);
        return 0;
    }
    amounts.counted = amounts.object = true;  // which makes a loop of its own for most
    add_to_rows(all, &it->stamp, &amounts, sign);
    add(it->held, &amounts, sign);
    return 0;
}

// Whether a row lacks room, and which: 0, or the errno to refuse with.
__attribute__((noinline)) int look_closely(u32 file, u32 kind, u64 bytes, bool waits) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = waiting_or_not(it, waits);
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        u32 row = stamp->rows[i], lacking;
        struct guard_row *of = row_at(row);
        if (of && of->enforced && (lacking = lacks(of, row, kind, bytes, 1)) != 0) return refuse(file, row, lacking - 1, bytes);
    }
    return 0;
}

// Takes from one row. 0: there was room, or it is not enforced, and the lack is counted; else what is lacking, + 1, and nothing
// is taken.
__attribute__((noinline)) int row_takes(u32 row, u32 kind, u64 bytes) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *of = row_at(row);
    u32 lacking, resource;
    bool taken;
    if (!of) return 0;
    lacking = take(of, &amounts);
    taken = !lacking;
    if (taken && of->total) lacking = total_lacks(row, kind, bytes, 0);
    if (!lacking) return 0;
    if (of->enforced && guard_mode == guard_deny) {
        if (taken) add(of->used, &amounts, -1ULL);
        return lacking;
    }
    if (!taken) add(of->used, &amounts, 1);
    resource = opaque(lacking - 1);
    if (resource < guard_resources) __sync_fetch_and_add(&of->refused[resource], 1);
    return 0;
}

// What the first rows of a file have given.
__attribute__((noinline)) int give_back(u32 file, u32 kind, u64 bytes, u32 rows, bool waits) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = waiting_or_not(it, waits);
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        if (i >= rows) break;
        struct guard_row *of = row_at(stamp->rows[i]);
        if (of) add(of->used, &amounts, -1ULL);
    }
    return 0;
}

// Gives all back when one refuses.
__attribute__((noinline)) int take_closely(u32 file, u32 kind, u64 bytes, bool waits) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = waiting_or_not(it, waits);
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        u32 row = stamp->rows[i], lacking = row_takes(row, kind, bytes);
        if (!lacking) continue;
        give_back(file, kind, bytes, i, waits);
        return refuse(file, row, lacking - 1, bytes);
    }
    if (it) add(held_by(it, waits), &amounts, 1);
    return 0;
}

// Looks first and raises then, so that others do not meet what is refused anyway.
static __always_inline int charge_closely(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    u32 refused;
    bool waits;
    if (!it) return 0;
    if (it->stamp.exempt) return shift(it->id, kind, bytes, 1);  // 0
    waits = begin_waiting(it, file);
    refused = guard_mode == guard_deny ? look_closely(file, kind, bytes, waits) : 0;
    if (!refused) refused = take_closely(file, kind, bytes, waits);
    if (waits) leave_waiting(it, file);
    return refused;
}

// Takes from all rows of the file, or from none. 0, or the errno to refuse with. Does what charge_closely() does for most
// requests, and leaves to it what is not simple: a file without a context, a context, one that is exempt, limits for the sum
// over devices, a row without room. A file that met one of the last two goes on so: what is refused again and again must not be
// raised before. The loop calls nothing, and is unrolled where the compiler can do that (-Wno-pass-failed: elsewhere without a
// word), which makes it fast.
__attribute__((noinline)) int charge(u32 file, u32 kind, u64 bytes) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows(), *of;
    struct guard_file *it = file_at(file);
    u64 mask = row_mask();
    u32 count, taken;
    if (!it || !all) return 0;
    if (it->closely || it->stamp.exempt || !amounts.object) return charge_closely(file, kind, bytes);
    amounts.counted = amounts.object = true;
    asm volatile("" : "+r"(it));  // so that it is found once
    count = it->stamp.count;
#pragma clang loop unroll(full)
    for (taken = 0; taken < guard_depth; ++taken) {
        if (taken >= count) {
            add(it->held, &amounts, 1);
            return 0;
        }
        of = &all[it->stamp.rows[taken] & mask];
        asm volatile("" : "+r"(of));  // so that it is found once
        if (of->total || take(of, &amounts)) break;
    }
    if (taken == guard_depth) {
        add(it->held, &amounts, 1);
        return 0;
    }
    it->closely = 1;
    give_back(file, kind, bytes, taken, false);
    return charge_closely(file, kind, bytes);
}

static __always_inline void uncharge(u64 id, u32 kind, u64 bytes) { shift(id, kind, bytes, -1ULL); }

// The row of the tenant that a file belongs to; none while that is not known.
static __always_inline struct guard_row *own_row(const struct guard_file *it) {
    return is_owner_known(it) ? row_at(it->stamp.rows[it->process_row ? 1 : 0]) : 0;
}

__attribute__((noinline)) int row_lacks(u32 row, u32 kind, u64 bytes) {
    struct guard_row *of = row_at(row);
    return of ? lacks(of, row, kind, bytes, 0) : 0;
}

// Of what was made anyhow: what the row has too much of, + 1; 0: nothing. Looks more than once, since another's request may
// have raised the row for a moment, to be refused.
__attribute__((noinline)) int row_excess(u32 row, u32 kind, u64 bytes) {
    u32 lacking = 0;
    for (u32 i = 0; i < looks_at_excess; ++i)
        if ((lacking = row_lacks(row, kind, bytes)) == 0) return 0;
    return lacking;
}

// 1: the limit is enforced, and the tenant's row names from now on what was exceeded.
__attribute__((noinline)) int blame(u32 file, u32 row, u32 lacking) {
    const struct guard_row *of = row_at(row);
    struct guard_file *it = file_at(file);
    struct guard_row *own = it ? own_row(it) : 0;
    if (!of || !of->enforced) return 0;
    if (own && row >= process_rows) __sync_fetch_and_or(&own->exceeded, 1U << (lacking - 1) % guard_resources);
    return 1;
}

__attribute__((noinline)) int row_exceeds(u32 file, u32 row, u32 kind, u64 bytes) {
    u32 lacking = row_excess(row, kind, bytes);
    if (!lacking) return 0;
    tell_guard(told_exceeded, file, row, lacking - 1, bytes);
    return blame(file, row, lacking);
}

// The same of what was made unseen: nobody is told, since it is not known who did.
__attribute__((noinline)) int note_excess(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = it ? stamp_in_force(it) : 0;
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        u32 lacking;
        if (stamp->exempt || i >= stamp->count) break;
        lacking = row_excess(stamp->rows[i], kind, bytes);
        if (lacking) blame(file, stamp->rows[i], lacking);
    }
    return 0;
}

__attribute__((noinline)) int exceeds(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = it ? stamp_in_force(it) : 0;
    int exceeded = 0;
    if (!stamp || stamp->exempt) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        exceeded |= row_exceeds(file, stamp->rows[i], kind, bytes);
    }
    return exceeded;
}

// Takes what was made anyhow. 1: an enforced limit is exceeded.
static __always_inline int charge_made(u64 id, u32 kind, u64 bytes) {
    shift(id, kind, bytes, 1);
    return exceeds((u32)id, kind, bytes);
}

// The first of these resources that the row has too much of, + 1; 0: none.
__attribute__((noinline)) u32 excess_of(u32 row, u32 resources) {
    const struct guard_row *of = row_at(row);
    if (!of || !of->enforced) return 0;
    for (u32 resource = 0; resource < guard_resources; ++resource)
        if (resources & 1U << resource && !has_room(of, row, resource, 0)) return resource + 1;
    return 0;
}

// While there is more than the file's tenant or those above it may have of what it once exceeded: the errno to refuse with;
// else it could do so again by each new file. A process that has too much is judged itself.
__attribute__((noinline)) int refuses_more(u32 file) {
    struct guard_file *it = file_at(file);
    struct guard_row *own = it ? own_row(it) : 0;
    u32 exceeded = own ? own->exceeded : 0, excess;
    if (!exceeded || guard_mode != guard_deny) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        u32 row = it->stamp.rows[i];
        if (row >= process_rows && (excess = excess_of(row, exceeded)) != 0) return refuse(file, row, excess - 1, 0);
    }
    __sync_val_compare_and_swap(&own->exceeded, exceeded, 0);
    return 0;
}
