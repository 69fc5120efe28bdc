// What processes use, by open device file: `openers` and `guests` (kernel_counts.h says what an entry holds).
//
// `openers` is plain memory, since looking up a file in a map took as long as all the rest of a count.
#pragma once

#include "guard_files.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, struct guest_key);
    __type(value, struct kernel_use);
} guests SEC(".maps");

// Processes whose end is of interest.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, u32);
} holders SEC(".maps");

static const struct kernel_use nothing;

static __always_inline void count(u64 *counts, u32 kind) {
    asm volatile("" : "+r"(kind));  // so that the verifier sees the bound in the register that is used
    if (kind < kind_count) __sync_fetch_and_add(&counts[kind], 1);
}

static __always_inline void add_bytes(struct kernel_use *use, u32 kind, u64 bytes) {
    if (bytes) __sync_fetch_and_add(kind == kind_mr ? &use->mr_bytes : &use->dm_bytes, bytes);
}

// The number of the file's uverbs device.
static __always_inline u32 uverbs_of(u64 file) { return BPF_CORE_READ((struct ib_uverbs_file *)file, device, devnum); }

// Fills in a new entry. The pid comes last, since it makes the entry valid.
static __always_inline void introduce(struct kernel_use *use, u32 uverbs, u32 pid, u32 opener, u64 cgroup) {
    u32 one = 1;
    use->uverbs = uverbs;
    use->cgroup = cgroup;
    use->opener = opener;
    use->pid = pid;
    bpf_map_update_elem(&holders, &pid, &one, BPF_ANY);
}

// An entry whose id has this bit is being freed, by one thread: nobody finds it any more. Its file may be closed already, and
// another have the same address.
#define ending (1ULL << 63)
enum { no_file = 1 };
static __always_inline bool is_ending(u64 id) { return id & ending; }

static __always_inline struct kernel_use *opener_at(u32 file, u32 probe) {
    return &openers[slot_of(file, 6, opener_slots, probe)];
}

static __always_inline struct kernel_use *opener_of(u64 file) {
    u32 half = lower_half(file);
    for (u32 probe = 0; probe < opener_probes; ++probe) {
        struct kernel_use *use = opener_at(half, probe);
        if (use->file == file && !is_ending(use->id)) return use;
    }
    return 0;
}

// Finds or makes the entry of a file. `begins`: it is new, and this thread says when it has begun. Null, and lost, when there is no
// room.
static struct kernel_use *enter_opener(u64 file, u32 pid, u64 cgroup, bool *begins) {
    u32 half = lower_half(file);
    for (u32 probe = 0; probe < opener_probes; ++probe) {
        struct kernel_use *use = opener_at(half, probe);
        u64 before = __sync_val_compare_and_swap(&use->file, 0, file);
        if (before == file && !is_ending(use->id)) return use;  // another thread was faster
        if (before != 0) continue;
        introduce(use, uverbs_of(file), pid, pid, cgroup);
        *begins = true;
        return use;
    }
    lose();
    return 0;
}

// A new entry has begun; `open`: it counts the context that the file has.
static __always_inline void now_begun(struct kernel_use *use, bool open) {
    __sync_lock_test_and_set(&use->begun, 1);
    if (!open || __sync_val_compare_and_swap(&use->created[kind_handle], 0, 1) != 0) return;  // another thread has
    if (guarded) shift(use->id, kind_handle, 0, 1);
}

// Another thread is about to begin it: for a microsecond, unless it is preempted.
__attribute__((noinline)) int await_begun(u32 file) {
    const struct kernel_use *use = &openers[file % opener_slots];
    for (u32 i = 0; i < most_waits; ++i)
        if (*(const volatile u32 *)&use->begun) return 1;
    return 0;
}
static __always_inline bool has_begun(const struct kernel_use *use) { return !guarded || use->begun || await_begun((u32)use->id); }

static __always_inline struct kernel_use *enter_guest(u64 opener, u32 pid) {
    struct guest_key key = {.opener = opener, .pid = pid};
    struct kernel_use *use = bpf_map_lookup_elem(&guests, &key);
    if (use) return use;
    bpf_map_update_elem(&guests, &key, &nothing, BPF_NOEXIST);
    use = bpf_map_lookup_elem(&guests, &key);
    if (!use) lose();
    return use;
}

// Where an object was counted; null when that entry is gone, and the count with it.
static __always_inline struct kernel_use *user_of(const struct counted_object *counted) {
    struct guest_key key = {.opener = counted->opener, .pid = counted->pid};
    struct kernel_use *use = &openers[(u32)counted->opener % opener_slots];
    if (key.pid) return bpf_map_lookup_elem(&guests, &key);
    return use->id == counted->opener ? use : 0;
}

// True for one thread, which frees it.
static __always_inline bool begin_ending(struct kernel_use *use, u64 id) {
    return !is_ending(id) && __sync_val_compare_and_swap(&use->id, id, id | ending) == id;
}

// Frees an opener's entry that is ending. The pid goes first, which makes it invalid; the file goes last, since then another file
// may take the entry. The new id disowns objects that still refer to the old one.
static __always_inline void clear(struct kernel_use *use) {
    const u32 kept = offsetof(struct kernel_use, cgroup);
    use->pid = 0;
    __builtin_memset((char *)use + kept, 0, sizeof *use - kept);
    __sync_lock_test_and_set(&use->file, no_file);  // by its new id, it must not be found as the old file's
    __sync_lock_test_and_set(&use->id, (use->id & ~ending) + (1ULL << 32));
    __sync_lock_test_and_set(&use->file, 0);
}

// Moves the totals of a closed file to an entry that outlives it. The kernel has destroyed what the file still held.
static void retire(struct kernel_use *use, u64 id) {
    u32 pid = use->pid;
    struct kernel_use *past;
    if (!begin_ending(use, id)) return;
    use->pid = 0;
    if (guarded) forget_file(id);
    past = enter_guest(use->uverbs, pid);
    if (past) {
        for (u32 kind = 0; kind < kind_count; ++kind) {
            u64 made = use->created[kind];
            __sync_fetch_and_add(&past->created[kind], made);
            __sync_fetch_and_add(&past->destroyed[kind], made);
        }
        past->uverbs = use->uverbs;
        past->cgroup = use->cgroup;
        past->opener = use->opener;
        past->pid = pid;
    }
    clear(use);
}

static void closed(u64 file) {
    struct kernel_use *use = opener_of(file);
    if (use) retire(use, use->id);
}

static __always_inline bool has_context(u64 file) { return BPF_CORE_READ((struct ib_uverbs_file *)file, ucontext) != 0; }

// True: the entry was of an earlier file at that address, whose end was missed: it had a context.
static __always_inline bool retire_stale(struct kernel_use *use, u64 file) {
    u64 id = use->id;  // of what is looked at: meanwhile another thread may retire it, and enter this file
    if (use->file != file || !use->created[kind_handle] || has_context(file)) return false;
    retire(use, id);
    return true;
}
