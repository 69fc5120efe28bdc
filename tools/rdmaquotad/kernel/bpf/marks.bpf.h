// What a thread is in the middle of.
#pragma once

#include "memory.bpf.h"

// What the object that a thread is creating turned out to be; mark_rereg: what it replaces ends with the same call. Taken
// at the commit, and where the function ends that sets it or the thread, so that none meets another object. There is room for as
// many threads as may have reserved something.
enum { mark_unpinned = 1, mark_second_handle = 2, mark_rereg = 4 };
static const u64 all_memory = ~0ULL;  // the length of an MR of everything that a process maps
struct mark {
    u64 length;  // of what is not pinned, where that is known
    u32 what, zero;
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, reservation_slots);
    __type(key, u64);  // thread
    __type(value, struct mark);
} marks SEC(".maps");

// With kprobes: the struct uverbs_attr_bundle of a context that a thread is opening.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 16384);
    __type(key, u64);  // thread
    __type(value, u64);
} openings SEC(".maps");

u64 marked;  // how many threads have marks; where none has, it makes no sense to look for one

static __always_inline u32 take_mark(u64 thread) {
    const struct mark *it;
    u32 found;
    if (!marked) return 0;
    it = bpf_map_lookup_elem(&marks, &thread);
    if (!it) return 0;
    found = it->what;
    if (bpf_map_delete_elem(&marks, &thread) == 0) __sync_fetch_and_add(&marked, -1);
    return found;
}

// Of an earlier request, whose end was not seen, or of one that has made nothing.
static __always_inline void drop_mark(void) {
    if (marked) take_mark(bpf_get_current_pid_tgid());
}

static __always_inline void set_marked_length(u32 mark, u64 length) {
    u64 thread = bpf_get_current_pid_tgid();
    struct mark it = {length, mark, 0}, *before = bpf_map_lookup_elem(&marks, &thread);
    if (before) {
        before->what |= mark;
        before->length = length;
    } else if (bpf_map_update_elem(&marks, &thread, &it, BPF_NOEXIST) == 0) {
        __sync_fetch_and_add(&marked, 1);
    } else {
        lose();
    }
}

static __always_inline void set_mark(u32 mark) { set_marked_length(mark, 0); }

// The length of what this thread has made and is not pinned, if its commit was not seen; else 0.
__attribute__((noinline)) u64 take_unpinned_length(void) {
    u64 thread = bpf_get_current_pid_tgid(), length = 0;
    const struct mark *it;
    if (!marked) return 0;
    it = bpf_map_lookup_elem(&marks, &thread);
    if (it && it->what & mark_unpinned) length = it->length;
    take_mark(thread);
    return length;
}

static __always_inline void set_opening(u64 attributes) {
    u64 thread = bpf_get_current_pid_tgid();
    if (bpf_map_update_elem(&openings, &thread, &attributes, BPF_ANY)) lose();
}

static __always_inline struct uverbs_attr_bundle *take_opening(void) {
    u64 thread = bpf_get_current_pid_tgid(), found;
    u64 *attributes = bpf_map_lookup_elem(&openings, &thread);
    if (!attributes) return 0;
    found = *attributes;
    bpf_map_delete_elem(&openings, &thread);
    return (void *)found;
}
