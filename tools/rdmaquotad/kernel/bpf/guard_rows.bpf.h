// Rows: what processes and tenants use. A creation takes from each row of its file, from the process up to the node, before
// it is made; whatever exceeds a limit takes nothing (guard_charge.bpf.h).
//
// Functions that are not static are checked by the verifier once, and not at each call: they take numbers only.
#pragma once

#include "memory.bpf.h"

const volatile u32 guarded;  // 0: nothing of the guard is loaded
u32 guard_mode SEC(".data.mode");  // alone in a map, so that a tool of any version can turn the guard off
// From this CLOCK_BOOTTIME (ns) on, the program kills a process that exceeds a limit through a path that it cannot inspect first. 0: never.
u64 guard_judges;

// What to refuse with that cannot be counted: EDQUOT, or 0 where nothing is refused.
static __always_inline int uncountable(void) { return guard_mode == guard_deny ? 122 : 0; }

// Instead of a kind: bytes that an MR may have more; what is made by a method that is not known, or by a request that could not
// be read; a request that hides what it asks for.
enum { another_length = kind_count, unknown_kind, unreadable_kind, hidden_kind };

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

// A ring of its own for openers to resolve: a process in a loop of refused requests can fill the other one.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} unknown SEC(".maps");

u64 guard_refusals;  // of all rows, since the program was loaded

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
    event->used = event->limit = event->refused = 0;
    if (of && resource < guard_limits) event->refused = of->refused[resource];
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

// Signed: what is subtracted before it has moved to its rows makes them seem to be below zero, which is room.
static __always_inline bool fits(u64 used, u64 amount, u64 limit) { return (long long)(used + amount) <= (long long)limit; }

// Where the rows of a process begin. Pids can be chosen so that many meet in one place, but not the nanosecond of a start.
static __always_inline u32 process_slot(u32 pid, u64 since) { return slot_of(pid ^ (u32)since, 0, process_rows, 0); }

// The sum over the devices of a process: its rows lie together.
__attribute__((noinline)) u64 process_sum(u32 row, u32 resource) {
    struct guard_row *own = row_at(row), *other;
    u64 sum = 0;
    if (!own || resource >= guard_resources) return 0;
    u32 first = process_slot(own->pid, own->since);
    for (u32 probe = 0; probe < process_probes; ++probe) {
        other = row_at(modulo(first + probe, process_rows));
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
    if (!total || total->limit[resource] == guard_no_limit) return 1;
    u64 sum = row < process_rows ? process_sum(row, resource) : tenant_sum(row, resource);
    return fits(sum, amount, total->limit[resource]);
}

static __always_inline bool has_room(const struct guard_row *of, u32 row, u32 resource, u64 amount) {
    return fits(of->used[resource], amount, of->limit[resource]) &&
           (of->total == 0 || total_has_room(row, resource, amount));
}
