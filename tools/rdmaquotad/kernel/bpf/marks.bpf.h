// What a thread is in the middle of.
#pragma once

#include "memory.bpf.h"

// What the object that a thread is creating turned out to be; mark_rereg: what it replaces ends with the same call. Taken
// at the commit, and where the function ends that sets it or the thread, so that none meets another object. There is room for as
// many threads as may have reserved something.
enum { mark_unpinned = 1, mark_rereg = 2 };
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, reservation_slots);
    __type(key, u64);  // thread
    __type(value, u32);
} marks SEC(".maps");

u64 marked;  // how many threads have marks; where none has, it makes no sense to look for one

static __always_inline u32 take_mark(u64 thread) {
    u32 *mark, found;
    if (!marked) return 0;
    mark = bpf_map_lookup_elem(&marks, &thread);
    if (!mark) return 0;
    found = *mark;
    if (bpf_map_delete_elem(&marks, &thread) == 0) __sync_fetch_and_add(&marked, -1);
    return found;
}

// Of an earlier request, whose end was not seen, or of one that has made nothing.
static __always_inline void drop_mark(void) {
    if (marked) take_mark(bpf_get_current_pid_tgid());
}

static __always_inline void set_mark(u32 mark) {
    u64 thread = bpf_get_current_pid_tgid();
    u32 *before = bpf_map_lookup_elem(&marks, &thread);
    if (before) *before |= mark;
    else if (bpf_map_update_elem(&marks, &thread, &mark, BPF_NOEXIST) == 0) __sync_fetch_and_add(&marked, 1);
    else lose();
}
