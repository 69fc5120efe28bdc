// Charging: what an object takes from each row of its file, and whether there is room.
#pragma once

#include "guard_waiting.bpf.h"

enum { object_place = guard_object * sizeof(u64) };

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

// Most things have no bytes: so they get a loop of their own.
static __always_inline struct amounts without_bytes(struct amounts it) {
    it.bytes = 0;
    return it;
}

static __always_inline void add(u64 *figures, const struct amounts *it, u64 sign) {
    if (it->counted) __sync_fetch_and_add(figure(figures, it->place), sign);
    if (it->object) __sync_fetch_and_add(&figures[guard_object], sign);
    if (it->bytes) __sync_fetch_and_add(figure(figures, it->bytes_place), sign * it->bytes);
}

// The same to what a row uses. The place of `used` becomes a part of each instruction.
static __always_inline void add_to_row(struct guard_row *of, const struct amounts *it, u64 sign) {
    u64 *of_kind = figure(of->limit, it->place), *of_bytes = figure(of->limit, it->bytes_place);
    asm volatile("" : "+r"(of_kind));
    if (it->counted) __sync_fetch_and_add(used_of(of_kind), sign);
    if (it->object) __sync_fetch_and_add(&of->used[guard_object], sign);
    if (!it->bytes) return;
    asm volatile("" : "+r"(of_bytes));
    __sync_fetch_and_add(used_of(of_bytes), sign * it->bytes);
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

// Of many who raise a sum at once, each sees what the others have raised, and puts back its own: then it begins again.
enum { most_tries = 16, others_took = -1 };

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

// All or nothing. False: there is no room for something. It does not say for what, which would cost each creation a sixth of this.
static __always_inline bool take(struct guard_row *of, const struct amounts *it) {
    if (it->counted && !take_figure(of, it->place, 1)) goto no_kind;
    if (it->object && !take_figure(of, object_place, 1)) goto no_object;
    if (!it->bytes) return true;
    if (!has_place(of, it->bytes_place, it->bytes)) goto no_object;  // else others would meet, for a moment, what can never be
    if (take_figure(of, it->bytes_place, it->bytes)) return true;
    put_figure(of, it->bytes_place, it->bytes);
no_object:
    if (it->object) put_figure(of, object_place, 1);
no_kind:
    if (it->counted) put_figure(of, it->place, 1);
    return false;
}

// True for one refusal of this row and resource in `guard_told_ms`.
static __always_inline bool tells_refusal(struct guard_row *of, u32 resource) {
    u32 now = bpf_ktime_get_ns() / 1000000, before = of->told_ms[resource];
    return now - before >= guard_told_ms && __sync_val_compare_and_swap(&of->told_ms[resource], before, now) == before;
}

__attribute__((noinline)) int refuse(u32 file, u32 row, u32 resource, u64 bytes) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    __sync_fetch_and_add(&guard_refusals, 1);
    if (of && resource < guard_limits) {
        __sync_fetch_and_add(&of->refused[resource], 1);
        if (tells_refusal(of, resource)) tell_guard(told_refused, file, row, resource, bytes);
    }
    return it ? stamp_in_force(it)->deny_errno : 0;
}

// A row of a stamp, of which `mask` gives the number.
static __always_inline struct guard_row *masked_row(struct guard_row *all, u64 number, u64 mask) {
    struct guard_row *of;
    asm volatile("%0 &= %1" : "+r"(number) : "r"(mask));
    of = &all[number];
    asm volatile("" : "+r"(of));  // so that it is found once
    return of;
}

// In a loop that calls nothing, and is unrolled where the compiler can do that, which makes it fast.
static __always_inline void add_to_rows(struct guard_row *all, const struct guard_stamp *stamp, const struct amounts *amounts,
                                        u64 sign) {
    u64 mask = row_mask();
#pragma clang loop unroll(full)
    for (u32 i = 0; i < guard_depth; ++i) {
        u32 number = stamp->rows[i];
        if (number == 0) break;
        add_to_row(masked_row(all, number, mask), amounts, sign);
    }
}

// To a file and its rows. What the file holds is raised first and lowered last: so a thread that stops in between makes the rows
// seem too low to the sidecar's audit, never too high, and nobody gets room that is not there.
static __always_inline void add_to_all(struct guard_row *all, const struct guard_stamp *stamp, u64 *held,
                                       const struct amounts *amounts, u64 sign) {
    if (sign == 1) add(held, amounts, sign);
    add_to_rows(all, stamp, amounts, sign);
    if (sign != 1) add(held, amounts, sign);
}

// shift() of a file that waits, or waited just now.
__attribute__((noinline)) int shift_waiting(u64 id, u32 kind, u64 bytes, u64 sign) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows();
    struct guard_file *it = file_at((u32)id);
    bool waits;
    if (!all || !it) return 0;
    note_return(it);
    waits = begin_waiting(it, (u32)id);
    add_to_all(all, waiting_or_not(it, waits), held_by(it, waits), &amounts, sign);
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
    note_return(it);
    if (!amounts.object) {
        add_to_all(all, &it->stamp, it->held, &amounts, sign);
        return 0;
    }
    amounts.counted = amounts.object = true;  // which makes a loop of its own for most
    if (bytes) {
        add_to_all(all, &it->stamp, it->held, &amounts, sign);
        return 0;
    }
    amounts = without_bytes(amounts);
    add_to_all(all, &it->stamp, it->held, &amounts, sign);
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
    u32 lacking = 0, resource;
    bool taken;
    if (!of) return 0;
    taken = take(of, &amounts);
    if (!taken) lacking = own_lacks(of, &amounts, 1) ?: named(amounts.place);  // by now there may be room again
    else if (of->total) lacking = total_lacks(row, kind, bytes, 0);
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

// What a file holds and its rows before the one that refused have given.
__attribute__((noinline)) int give_back(u32 file, u32 kind, u64 bytes, u32 refusing, bool waits) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = waiting_or_not(it, waits);
    if (it) note_return(it);
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        if (i >= stamp->count || stamp->rows[i] == refusing) break;
        struct guard_row *of = row_at(stamp->rows[i]);
        if (of) add(of->used, &amounts, -1ULL);
    }
    if (it) add(held_by(it, waits), &amounts, -1ULL);
    return 0;
}

// Gives all back when one refuses: `others_took`, or, at the `last` try, the errno.
__attribute__((noinline)) int take_closely(u32 file, u32 kind, u64 bytes, bool waits, bool last) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = waiting_or_not(it, waits);
    if (it) add(held_by(it, waits), &amounts, 1);
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        u32 row = stamp->rows[i], lacking = row_takes(row, kind, bytes);
        if (!lacking) continue;
        give_back(file, kind, bytes, row, waits);
        if (!last) return others_took;
        return refuse(file, row, lacking - 1, bytes);
    }
    return 0;
}

// Looks first and raises then, so that others do not meet what is refused anyway.
static __always_inline int charge_closely(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    int refused = 0;
    bool waits;
    if (!it) return 0;
    if (it->stamp.exempt) return shift(it->id, kind, bytes, 1);  // 0
    waits = begin_waiting(it, file);
    if (waits && refuses_unknown(it)) refused = 11;  // EAGAIN
    for (u32 i = 0; !refused && i < most_tries; ++i) {
        refused = guard_mode == guard_deny ? look_closely(file, kind, bytes, waits) : 0;
        if (!refused) refused = take_closely(file, kind, bytes, waits, i + 1 == most_tries);
        if (refused != others_took) break;
    }
    if (waits) leave_waiting(it, file);
    return refused;
}

// False, and which row refused, whose figures are as before. The loop calls nothing, and is unrolled where the compiler can do
// that (-Wno-pass-failed: elsewhere without a word), which makes it fast.
static __always_inline bool take_from_rows(struct guard_row *all, const struct guard_stamp *stamp, const struct amounts *amounts,
                                           struct guard_row **refusing) {
    u64 mask = row_mask();
#pragma clang loop unroll(full)
    for (u32 i = 0; i < guard_depth; ++i) {
        struct guard_row *of;
        u32 number = stamp->rows[i];
        if (number == 0) break;
        of = masked_row(all, number, mask);
        if (!of->total && take(of, amounts)) continue;
        *refusing = of;
        return false;
    }
    return true;
}

// The same of what the file holds, and its rows.
static __always_inline bool take_at_once(struct guard_row *all, struct guard_file *it, struct amounts amounts,
                                         struct guard_row **refusing) {
    amounts.counted = amounts.object = true;  // which makes a loop of its own for most
    if (amounts.bytes) {
        add(it->held, &amounts, 1);
        return take_from_rows(all, &it->stamp, &amounts, refusing);
    }
    amounts = without_bytes(amounts);
    add(it->held, &amounts, 1);
    return take_from_rows(all, &it->stamp, &amounts, refusing);
}

// Takes from all rows of the file, or from none. 0, or the errno to refuse with. Does what charge_closely() does for most
// requests, and leaves to it what is not simple: a file without a context, a context, one that is exempt, limits for the sum
// over devices, a row without room. A file that met one of the last two goes on so: what is refused again and again must not be
// raised before.
__attribute__((noinline)) int charge(u32 file, u32 kind, u64 bytes) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows(), *refusing;
    struct guard_file *it = file_at(file);
    if (!it || !all) return 0;
    if (!it->closely && amounts.object) {
        asm volatile("" : "+r"(it));  // so that it is found once
        if (take_at_once(all, it, amounts, &refusing)) return 0;
        it->closely = 1;
        all = all_rows();  // again, so that it is not kept until here
        if (all) give_back(file, kind, bytes, (u32)((char *)refusing - (char *)all) / sizeof *all, false);
    }
    return charge_closely(file, kind, bytes);
}

static __always_inline void uncharge(u64 id, u32 kind, u64 bytes) { shift(id, kind, bytes, -1ULL); }
