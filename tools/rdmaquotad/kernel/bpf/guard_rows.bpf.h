// Rows: what processes and tenants use, and taking from them. A creation takes from each row of its file, from the
// process up to the node, before it is made; whatever exceeds a limit takes nothing.
//
// Functions that are not static are checked by the verifier once, and not at each call: they take numbers only.
#pragma once

#include "memory.bpf.h"

const volatile u32 guarded;  // 0: nothing of the guard is loaded
u32 guard_mode SEC(".data.mode");  // alone in a map, so that a tool of any version can turn the guard off
u32 guard_judges;  // 1: whoever makes more than is allowed, by a way that is not looked at before, is killed

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
static __always_inline u32 bytes_place(u32 kind) { return kind == kind_mr ? guard_mr_bytes : guard_dm_bytes; }

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
    u32 first = slot_of((u32)(own->process >> 32), 0, process_rows, 0);
    for (u32 probe = 0; probe < process_probes; ++probe) {
        other = row_at((first + probe) % process_rows);
        if (other && other->since == own->since && other->process >> 32 == own->process >> 32)
            sum += other->used[resource];
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
    __sync_fetch_and_add(&figures[place_of(kind)], sign);
    if (kind != kind_handle) __sync_fetch_and_add(&figures[guard_object], sign);
    if (bytes) __sync_fetch_and_add(&figures[bytes_place(kind)], sign * bytes);
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
    u32 place = place_of(kind), refused = 0;
    if (!of) return 0;
    bool enforced = of->enforced && guard_mode == guard_deny;
    // So that others do not meet, for a moment, bytes that are too many anyway; one object more harms nobody where there are
    // too many.
    if (bytes && enforced && !has_room(of, row, bytes_place(kind), bytes)) return bytes_place(kind) + 1;
    if (!raise(of, row, place, 1)) refused = place + 1;
    if (kind != kind_handle && !raise(of, row, guard_object, 1)) refused = guard_object + 1;
    if (bytes && !raise(of, row, bytes_place(kind), bytes)) refused = bytes_place(kind) + 1;
    if (!refused) return 0;
    if (enforced) {
        add(of->used, kind, bytes, -1ULL);
        return refused;
    }
    if (refused - 1 < guard_resources) __sync_fetch_and_add(&of->refused[refused - 1], 1);
    return 0;
}

static __always_inline void note_refusal(u32 row, u32 resource) {
    struct guard_row *of = row_at(row);
    if (of && resource < guard_resources) __sync_fetch_and_add(&of->refused[resource], 1);
}

// Takes what was made anyhow. 1: an enforced limit is exceeded.
__attribute__((noinline)) int row_exceeds(u32 file, u32 row, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    u32 refused;
    if (!of || !it) return 0;
    add(of->used, kind, bytes, 1);
    if (it->stamp.exempt) return 0;
    refused = has_room(of, row, place_of(kind), 0) ? 0 : place_of(kind) + 1;
    if (kind != kind_handle && !has_room(of, row, guard_object, 0)) refused = guard_object + 1;
    if (bytes && !has_room(of, row, bytes_place(kind), 0)) refused = bytes_place(kind) + 1;
    if (!refused || refused - 1 >= guard_resources) return 0;
    tell_guard(told_exceeded, file, row, refused - 1, bytes);
    return of->enforced;
}

__attribute__((noinline)) int charge_made(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    int exceeded = 0;
    if (!it) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        exceeded |= row_exceeds(file, it->stamp.rows[i], kind, bytes);
    }
    add(it->held, kind, bytes, 1);
    return exceeded;
}

// Takes from all rows of the file, or from none. 0, or the errno to refuse with.
__attribute__((noinline)) int charge(u32 file, u32 kind, u64 bytes) {
    struct guard_file *it = file_at(file);
    u32 taken = 0, refused = 0, row = 0;
    if (!it) return 0;
    if (it->stamp.exempt) return charge_made(file, kind, bytes);  // 0
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
    note_refusal(row, refused - 1);
    tell_guard(told_refused, file, row, refused - 1, bytes);
    return it->stamp.deny_errno;
}

__attribute__((noinline)) int uncharge(u64 id, u32 kind, u64 bytes) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id) return 0;  // closed: all was given back
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        give_back(it->stamp.rows[i], kind, bytes);
    }
    add(it->held, kind, bytes, -1ULL);
    return 0;
}
