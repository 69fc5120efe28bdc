// Files by which a context is being opened: by one thread at a time. So what the guard begins for a file, and forgets when it
// is refused, is no other thread's meanwhile. Honest programs open a file once.
#pragma once

#include "memory.bpf.h"

struct opening being_opened[opening_slots];
u32 opening_count;  // how many are in the table, also those whose ioctl another security module refused

static __always_inline struct opening *opening_at(u64 file, u32 probe) {
    return &being_opened[slot_of(lower_half(file), 6, opening_slots, probe)];
}

static __always_inline struct opening *find_opening(u64 file) {
    for (u32 probe = 0; probe < opening_probes; ++probe) {
        struct opening *it = opening_at(file, probe);
        if (it->file == file) return it;
    }
    return 0;
}

// False when another thread is opening it, or, and lost, when there is no room.
__attribute__((noinline)) int begin_opening(u64 file) {
    u64 thread = current_thread();
    struct opening *begun = find_opening(file);
    if (begun) return begun->thread == thread;
    for (u32 probe = 0; probe < opening_probes; ++probe) {
        struct opening *it = opening_at(file, probe);
        u64 before = __sync_val_compare_and_swap(&it->file, 0, file);
        if (before == file) return it->thread == thread;
        if (before != 0) continue;
        it->thread = thread;
        __sync_fetch_and_add(&opening_count, 1);
        return 1;
    }
    lose();
    return 0;
}

static __always_inline void free_opening(struct opening *it, u64 thread) {
    if (!thread || __sync_val_compare_and_swap(&it->thread, thread, 0) != thread) return;  // another thread does
    __sync_fetch_and_add(&opening_count, -1);
    it->file = 0;
}

// By this thread, or by whichever where the file is closed (`always`).
static __always_inline void end_opening(u64 file, bool always) {
    struct opening *it = find_opening(file);
    if (it && (always || it->thread == current_thread())) free_opening(it, it->thread);
}
