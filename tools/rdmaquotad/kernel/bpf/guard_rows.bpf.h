// Rows: what processes and tenants use, and taking from them. A creation takes from each row of its file, from the
// process up to the node, before it is made; whatever exceeds a limit takes nothing.
//
// Functions that are not static are checked by the verifier once, and not at each call: they take numbers only.
#pragma once

#include "memory.bpf.h"

const volatile u32 guarded;  // 0: nothing of the guard is loaded
u32 guard_mode SEC(".data.mode");  // alone in a map, so that a tool of any version can turn the guard off
u32 guard_judges;  // 1: whoever makes more than is allowed, by a way that is not looked at before, is killed

// Instead of a kind: bytes that an MR may have more, and what is made by a method that is not known.
enum { another_length = kind_count, unknown_kind };

// Each table is one value, so that a program finds an entry by arithmetic. Without the guard it has one entry only, as the
// verifier sees.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(u32));
    __uint(value_size, guard_rows * sizeof(struct guard_row));
} rows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(u32));
    __uint(value_size, opener_slots * sizeof(struct guard_file));
} files SEC(".maps");

// Which row is whose. No program reads it; whoever writes the rows after their owner finds them by it.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, guard_rows);
    __type(key, struct guard_name);
    __type(value, u32);
} names SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} guard_events SEC(".maps");

static __always_inline struct guard_row *all_rows(void) {
    u32 all = 0;
    return bpf_map_lookup_elem(&rows, &all);
}
// As 64 bits, of which the verifier knows the value also when they were put away on the stack.
static __always_inline u64 row_mask(void) { return guarded ? guard_rows - 1 : 0; }
static __always_inline struct guard_row *row_at(u32 row) {
    struct guard_row *all = all_rows();
    return all ? &all[row & row_mask()] : 0;
}

static __always_inline struct guard_file *file_at(u32 file) {
    u32 all = 0;
    struct guard_file *first = bpf_map_lookup_elem(&files, &all);
    return first ? &first[file & (guarded ? opener_slots - 1ULL : 0)] : 0;
}

// The place of a kind in a row's figures, and of its bytes; 0 where it has none.
static __always_inline u32 place_of(u32 kind) {
    u32 place = kind;
    asm volatile("" : "+r"(place));  // so that the verifier sees the bound in the register that is used
    return place < guard_object ? place : guard_other;
}
static __always_inline u32 bytes_place(u32 kind) { return kind == kind_dm ? guard_dm_bytes : guard_mr_bytes; }

static __always_inline u32 current_uid(void) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    return BPF_CORE_READ(task, cred, euid.val);
}

// Events that find no room are only counted in the rows.
__attribute__((noinline)) int tell_guard(u32 what, u32 file, u32 row, u32 resource, u64 amount) {
    struct guard_event *event = bpf_ringbuf_reserve(&guard_events, sizeof *event, 0);
    const struct guard_row *of = row_at(row);
    if (!event) return 0;
    event->used = event->limit = 0;
    if (of && resource < guard_resources) {
        event->used = of->used[resource];
        event->limit = of->limit[resource];
    }
    event->what = what;
    event->pid = current_pid();
    event->file = file;
    event->row = row;
    event->resource = resource;
    event->uid = current_uid();
    event->amount = amount;
    bpf_get_current_comm(event->comm, sizeof event->comm);
    bpf_ringbuf_submit(event, 0);
    return 0;
}

static __always_inline bool fits(u64 used, u64 amount, u64 limit) { return used + amount <= limit; }

// The sum over the devices of a process: its rows lie together.
__attribute__((noinline)) u64 process_sum(u32 row, u32 resource) {
    struct guard_row *own = row_at(row), *other;
    u64 sum = 0;
    if (!own || resource >= guard_resources) return 0;
    u32 first = slot_of(own->pid, 0, process_rows, 0);
    for (u32 probe = 0; probe < process_probes; ++probe) {
        other = row_at((first + probe) % process_rows);
        if (other && other->since == own->since && other->pid == own->pid) sum += other->used[resource];
    }
    return sum;
}

__attribute__((noinline)) u64 tenant_sum(u32 row, u32 resource) {
    struct guard_row *of = row_at(row);
    u64 sum = 0;
    u32 next = row;
    if (resource >= guard_resources) return 0;
    for (u32 device = 0; device < most_guarded_devices && of; ++device) {
        sum += of->used[resource];
        next = of->next;
        if (next == row) break;
        of = row_at(next);
    }
    return sum;
}

// Whether the sum over devices leaves room for `amount`, which the row may have taken already (then 0).
static __always_inline bool total_has_room(u32 row, u32 resource, u64 amount) {
    struct guard_row *of = row_at(row), *total;
    if (!of || resource >= guard_resources) return 1;
    total = row_at(of->total);
    if (!total || total->limit[resource] == ~0ULL) return 1;
    u64 sum = row < process_rows ? process_sum(row, resource) : tenant_sum(row, resource);
    return fits(sum, amount, total->limit[resource]);
}

static __always_inline bool has_room(const struct guard_row *of, u32 row, u32 resource, u64 amount) {
    return fits(of->used[resource], amount, of->limit[resource]) &&
           (of->total == 0 || total_has_room(row, resource, amount));
}

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
    if (it->object && !has_place(of, guard_object * sizeof(u64), more)) return guard_object + 1;
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

// The resource without room, + 1.
static __always_inline u32 take(struct guard_row *of, const struct amounts *it) {
    u32 lacking = 0;
    if (it->counted && !take_figure(of, it->place, 1)) lacking = named(it->place);
    if (it->object && !take_figure(of, guard_object * sizeof(u64), 1)) lacking = guard_object + 1;
    if (it->bytes && !take_figure(of, it->bytes_place, it->bytes)) lacking = named(it->bytes_place);
    return lacking;
}

__attribute__((noinline)) int refuse(u32 file, u32 row, u32 resource, u64 bytes) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    if (of && resource < guard_resources) __sync_fetch_and_add(&of->refused[resource], 1);
    tell_guard(told_refused, file, row, resource, bytes);
    return it ? it->stamp.deny_errno : 0;
}

// Adds to what the file's rows use, or subtracts by a sign of -1, whatever their limits are.
__attribute__((noinline)) int shift(u64 id, u32 kind, u64 bytes, u64 sign) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows();
    struct guard_file *it = file_at((u32)id);
    u64 mask = row_mask();
    u32 count;
    if (!all || !it || it->id != id) return 0;  // closed: all was given back
    count = it->stamp.count;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= count) break;
        struct guard_row *of = &all[it->stamp.rows[i] & mask];
        asm volatile("" : "+r"(of));  // so that it is found once
        add(of->used, &amounts, sign);
    }
    add(it->held, &amounts, sign);
    return 0;
}

// Whether a row lacks room, and which: 0, or the errno to refuse with.
__attribute__((noinline)) int look_closely(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    for (u32 i = 0; it && i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        u32 row = it->stamp.rows[i], lacking;
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
    u32 lacking;
    if (!of) return 0;
    lacking = take(of, &amounts);
    if (!lacking && of->total) lacking = total_lacks(row, kind, bytes, 0);
    if (!lacking) return 0;
    if (of->enforced && guard_mode == guard_deny) {
        add(of->used, &amounts, -1ULL);
        return lacking;
    }
    if (lacking - 1 < guard_resources) __sync_fetch_and_add(&of->refused[lacking - 1], 1);
    return 0;
}

// From the row number `from` of the file on; those before have given. Gives all back when one refuses.
__attribute__((noinline)) int take_closely(u32 file, u32 kind, u64 bytes, u32 from) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_file *it = file_at(file);
    u32 taken = 0, lacking = 0, row = 0;
    if (!it) return 0;
    for (; taken < guard_depth; ++taken) {
        if (taken >= it->stamp.count) break;
        if (taken < from) continue;
        row = it->stamp.rows[taken];
        if ((lacking = row_takes(row, kind, bytes)) != 0) break;
    }
    if (!lacking) {
        add(it->held, &amounts, 1);
        return 0;
    }
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= taken) break;
        struct guard_row *of = row_at(it->stamp.rows[i]);
        if (of) add(of->used, &amounts, -1ULL);
    }
    return refuse(file, row, lacking - 1, bytes);
}

// Looks first and raises then, so that others do not meet what is refused anyway.
static __always_inline int charge_closely(u32 file, u32 kind, u64 bytes) {
    u32 refused = guard_mode == guard_deny ? look_closely(file, kind, bytes) : 0;
    return refused ? refused : take_closely(file, kind, bytes, 0);
}

// Takes from all rows of the file, or from none. 0, or the errno to refuse with. Does what charge_closely() does, and leaves to
// it what is not simple: a context, limits for the sum over devices, a row without room. The loops call nothing but that,
// which makes them fast.
__attribute__((noinline)) int charge(u32 file, u32 kind, u64 bytes) {
    struct amounts amounts = amounts_of(kind, bytes);
    struct guard_row *all = all_rows(), *of;
    struct guard_file *it = file_at(file);
    u64 mask = row_mask();
    bool deny = guard_mode == guard_deny;
    u32 count;
    if (!it || !all) return 0;
    if (it->stamp.exempt) return shift(it->id, kind, bytes, 1);  // 0
    if (!amounts.object) return charge_closely(file, kind, bytes);
    amounts.counted = amounts.object = true;
    count = it->stamp.count;
    for (u32 i = 0; deny && i < guard_depth; ++i) {
        if (i >= count) break;
        of = &all[it->stamp.rows[i] & mask];
        asm volatile("" : "+r"(of));  // so that it is found once
        if (of->enforced && (of->total || own_lacks(of, &amounts, 1))) return charge_closely(file, kind, bytes);
    }
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= count) break;
        of = &all[it->stamp.rows[i] & mask];
        asm volatile("" : "+r"(of));
        if (of->total) return take_closely(file, kind, bytes, i);
        if (!take(of, &amounts)) continue;
        add(of->used, &amounts, -1ULL);
        return take_closely(file, kind, bytes, i);
    }
    add(it->held, &amounts, 1);
    return 0;
}

static __always_inline void uncharge(u64 id, u32 kind, u64 bytes) { shift(id, kind, bytes, -1ULL); }

// The row of the tenant that a file belongs to; none while that is not known.
static __always_inline struct guard_row *own_row(const struct guard_file *it) {
    return it->stamped ? row_at(it->stamp.rows[it->process_row ? 1 : 0]) : 0;
}

// Of what was made anyhow. 1: an enforced limit is exceeded, which the tenant's row then names.
__attribute__((noinline)) int row_exceeds(u32 file, u32 row, u32 kind, u64 bytes) {
    struct guard_row *of = row_at(row), *own;
    struct guard_file *it = file_at(file);
    u32 lacking;
    if (!of || !it || (lacking = lacks(of, row, kind, bytes, 0)) == 0) return 0;
    tell_guard(told_exceeded, file, row, lacking - 1, bytes);
    if (!of->enforced) return 0;
    own = own_row(it);
    if (own && row >= process_rows) own->exceeded = row << 8 | lacking;
    return 1;
}

__attribute__((noinline)) int exceeds(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    int exceeded = 0;
    if (!it || it->stamp.exempt) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        exceeded |= row_exceeds(file, it->stamp.rows[i], kind, bytes);
    }
    return exceeded;
}

// Takes what was made anyhow. 1: an enforced limit is exceeded.
static __always_inline int charge_made(u64 id, u32 kind, u64 bytes) {
    shift(id, kind, bytes, 1);
    return exceeds((u32)id, kind, bytes);
}

// While the file's tenant exceeds what it once did: the errno to refuse with; else it could do so again by each new file.
__attribute__((noinline)) int refuses_more(u32 file) {
    struct guard_file *it = file_at(file);
    struct guard_row *own = it ? own_row(it) : 0, *of;
    u32 exceeded = own ? own->exceeded : 0, resource = (exceeded & 0xff) - 1;
    if (!exceeded || guard_mode != guard_deny || resource >= guard_resources) return 0;
    of = row_at(exceeded >> 8);
    if (of && of->enforced && !has_room(of, exceeded >> 8, resource, 0)) return refuse(file, exceeded >> 8, resource, 0);
    own->exceeded = 0;
    return 0;
}
