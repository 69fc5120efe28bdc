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

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, guard_rows);
    __type(key, u32);
    __type(value, struct guard_row);
} rows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, opener_slots);
    __type(key, u32);
    __type(value, struct guard_file);
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

static __always_inline struct guard_row *row_at(u32 row) { return bpf_map_lookup_elem(&rows, &row); }
static __always_inline struct guard_file *file_at(u32 file) { return bpf_map_lookup_elem(&files, &file); }

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
__attribute__((noinline)) int total_has_room(u32 row, u32 resource, u64 amount) {
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

// Raises first and compares after, so that of many at once none is allowed too much.
static __always_inline bool raise(struct guard_row *of, u32 row, u32 resource, u64 amount) {
    u64 before = __sync_fetch_and_add(&of->used[resource], amount);
    return fits(before, amount, of->limit[resource]) && (of->total == 0 || total_has_room(row, resource, 0));
}

static __always_inline void add(u64 *figures, u32 kind, u64 bytes, u64 sign) {
    if (kind < kind_count) __sync_fetch_and_add(&figures[place_of(kind)], sign);
    if (kind < kind_count && kind != kind_handle) __sync_fetch_and_add(&figures[guard_object], sign);
    if (bytes) __sync_fetch_and_add(&figures[bytes_place(kind)], sign * bytes);
}

// What the row has no room for, + 1; 0: there is room for all. `more` is 0 when the row has taken it already.
static __always_inline u32 lacks(const struct guard_row *of, u32 row, u32 kind, u64 bytes, u64 more) {
    if (kind < kind_count && !has_room(of, row, place_of(kind), more)) return place_of(kind) + 1;
    if (kind < kind_count && kind != kind_handle && !has_room(of, row, guard_object, more)) return guard_object + 1;
    if (bytes && !has_room(of, row, bytes_place(kind), more * bytes)) return bytes_place(kind) + 1;
    return 0;
}

__attribute__((noinline)) int give_back(u32 row, u32 kind, u64 bytes) {
    struct guard_row *of = row_at(row);
    if (of) add(of->used, kind, bytes, -1ULL);
    return 0;
}

// Takes from the row. 0: there is room; else the resource that has none, + 1; then nothing was taken, unless the row is not
// enforced.
__attribute__((noinline)) int row_takes(u32 row, u32 kind, u64 bytes) {
    struct guard_row *of = row_at(row);
    u32 refused = 0;
    if (!of) return 0;
    if (kind < kind_count && !raise(of, row, place_of(kind), 1)) refused = place_of(kind) + 1;
    if (kind < kind_count && kind != kind_handle && !raise(of, row, guard_object, 1)) refused = guard_object + 1;
    if (bytes && !raise(of, row, bytes_place(kind), bytes)) refused = bytes_place(kind) + 1;
    if (!refused) return 0;
    if (of->enforced && guard_mode == guard_deny) {
        add(of->used, kind, bytes, -1ULL);
        return refused;
    }
    if (refused - 1 < guard_resources) __sync_fetch_and_add(&of->refused[refused - 1], 1);
    return 0;
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
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id) return 0;  // closed: all was given back
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        struct guard_row *of = row_at(it->stamp.rows[i]);
        if (of) add(of->used, kind, bytes, sign);
    }
    add(it->held, kind, bytes, sign);
    return 0;
}

// Takes from all rows of the file, or from none. 0, or the errno to refuse with. Looks first and raises then, so that others
// do not meet what is refused anyway.
__attribute__((noinline)) int charge(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    u32 taken = 0, refused = 0, row = 0;
    if (!it) return 0;
    if (it->stamp.exempt) return shift(it->id, kind, bytes, 1);  // 0
    for (u32 i = 0; i < guard_depth && guard_mode == guard_deny; ++i) {
        if (i >= it->stamp.count) break;
        row = it->stamp.rows[i];
        struct guard_row *of = row_at(row);
        if (of && of->enforced && (refused = lacks(of, row, kind, bytes, 1)) != 0) return refuse(file, row, refused - 1, bytes);
    }
    for (; taken < guard_depth; ++taken) {
        if (taken >= it->stamp.count) break;
        row = it->stamp.rows[taken];
        if ((refused = row_takes(row, kind, bytes)) != 0) break;
    }
    if (!refused) {
        add(it->held, kind, bytes, 1);
        return 0;
    }
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= taken) break;
        give_back(it->stamp.rows[i], kind, bytes);
    }
    return refuse(file, row, refused - 1, bytes);
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
    u32 refused;
    if (!of || !it || (refused = lacks(of, row, kind, bytes, 0)) == 0) return 0;
    tell_guard(told_exceeded, file, row, refused - 1, bytes);
    if (!of->enforced) return 0;
    own = own_row(it);
    if (own && row >= process_rows) own->exceeded = row << 8 | refused;
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
