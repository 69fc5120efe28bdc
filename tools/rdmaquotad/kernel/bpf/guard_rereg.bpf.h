// ibv_rereg_mr may give an MR another length in place. Then the MRs of that file are looked through, since the call does not
// tell which it was: 131,072 slots, half a millisecond for a call that programs seldom make.
#pragma once

#include "guard_rows.bpf.h"
#include "objects.bpf.h"

// Counts bytes that an MR has more or less, by 64 bits' wrapping. Who exceeds a limit by it is treated as one who made an object.
__attribute__((noinline)) int change_bytes(u64 id, u64 more) {
    struct guard_file *it = file_at((u32)id);
    int exceeded = 0;
    if (!it || it->id != id) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        struct guard_row *of = row_at(it->stamp.rows[i]);
        if (!of) break;
        __sync_fetch_and_add(&of->used[guard_mr_bytes], more);
        if (more >> 63 || it->stamp.exempt || has_room(of, it->stamp.rows[i], guard_mr_bytes, 0)) continue;
        tell_guard(told_exceeded, (u32)id, it->stamp.rows[i], guard_mr_bytes, more);
        exceeded |= of->enforced;
    }
    __sync_fetch_and_add(&it->held[guard_mr_bytes], more);
    if (exceeded) judge((u32)id);
    return 0;
}

// 0: there is room for so many bytes more; else the errno to refuse with.
__attribute__((noinline)) int refuses_bytes(u64 id, u64 bytes) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id || it->stamp.exempt || guard_mode != guard_deny) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        u32 row = it->stamp.rows[i];
        struct guard_row *of = row_at(row);
        if (!of || !of->enforced || has_room(of, row, guard_mr_bytes, bytes)) continue;
        note_refusal(row, guard_mr_bytes);
        tell_guard(told_refused, (u32)id, row, guard_mr_bytes, bytes);
        return it->stamp.deny_errno;
    }
    return 0;
}

struct recount {
    u64 opener;
};

static __always_inline u64 length_of(u64 uobject) {
    return bytes_of(kind_mr, BPF_CORE_READ((struct ib_uobject *)uobject, object));
}

static __always_inline void count_change(const struct counted_object *counted, u64 more) {
    struct kernel_use *use = user_of(counted);
    if (use) add_bytes(use, kind_mr, more);
    change_bytes(counted->opener, more);
}

// What the object's end takes from here is what was counted: whoever changes it counts the difference, unless its end was first.
static long recount_slot(u32 number, struct recount *of) {
    struct object_slot *slot = &objects[number % object_slots];
    u64 object = slot->object, before = slot->counted.bytes, now;
    if (object <= slot_ends || before == 0 || slot->counted.opener != of->opener || slot->counted.kind != kind_mr) return 0;
    now = length_of(object);
    if (now == before || __sync_val_compare_and_swap(&slot->counted.bytes, before, now) != before) return 0;
    if (slot->object != object && __sync_val_compare_and_swap(&slot->counted.bytes, now, before) == now) return 0;
    count_change(&slot->counted, now - before);
    return 0;
}

static long recount_overflow(void *map, u64 *object, struct counted_object *counted, struct recount *of) {
    u64 before = counted->bytes, now;
    if (before == 0 || counted->opener != of->opener || counted->kind != kind_mr) return 0;
    now = length_of(*object);
    if (now == before || __sync_val_compare_and_swap(&counted->bytes, before, now) != before) return 0;
    count_change(counted, now - before);
    return 0;
}

static __always_inline void recount_memory(u64 ufile) {
    struct kernel_use *use = opener_of(ufile);
    struct recount of = {};
    if (!use) return;
    of.opener = use->id;
    bpf_loop(object_slots, recount_slot, &of, 0);
    if (any_overflow) bpf_for_each_map_elem(&overflow, recount_overflow, &of, 0);
}
