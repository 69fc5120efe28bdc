// ibv_rereg_mr may give an MR another length in place. Then the MRs of that file are looked through, since the call does not
// tell which it was: 131,072 slots, half a millisecond for a call that programs seldom make.
#pragma once

#include "guard_excess.bpf.h"
#include "objects.bpf.h"

// Whether the file's rows have too many bytes, apart from `twice` of them that may be counted twice. Else, if that is so by
// these only, it is left to whoever had reserved nothing.
__attribute__((noinline)) int exceeds_bytes(u32 file, u64 more, u64 twice) {
    struct guard_file *it = file_at(file);
    const struct guard_stamp *stamp = judging_stamp(it);
    int exceeded = 0;
    if (!it || !stamp) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        struct guard_row *of = row_at(stamp->rows[i]);
        if (!of || has_room(of, stamp->rows[i], guard_mr_bytes, 0)) continue;
        it->doubtful = 1;
        if (!has_room(of, stamp->rows[i], guard_mr_bytes, -twice)) exceeded |= row_exceeds(file, stamp->rows[i], another_length, more);
    }
    return exceeded;
}

struct recount {
    u64 opener;
    u64 more;  // by 64 bits' wrapping
};

static __always_inline u64 length_of(u64 uobject) {
    return bytes_of(kind_mr, BPF_CORE_READ((struct ib_uobject *)uobject, object));
}

static __always_inline bool may_change(const struct counted_object *counted) { return counted->kind == kind_mr && !counted->unpinned; }

static __always_inline void count_change(struct recount *of, const struct counted_object *counted, u64 more) {
    struct kernel_use *use = user_of(counted);
    if (use) add_bytes(use, kind_mr, more);
    of->more += more;
}

// What the object's end takes from here is what was counted: whoever changes it counts the difference, unless its end was first.
static long recount_slot(u32 number, struct recount *of) {
    struct object_slot *slot = &objects[number % object_slots];
    u64 object = slot->object, before = slot->counted.bytes, now;
    if (object <= slot_ends || slot->counted.opener != of->opener || !may_change(&slot->counted)) return 0;
    now = length_of(object);
    if (now == before || __sync_val_compare_and_swap(&slot->counted.bytes, before, now) != before) return 0;
    if (slot->object != object && __sync_val_compare_and_swap(&slot->counted.bytes, now, before) == now) return 0;
    count_change(of, &slot->counted, now - before);
    return 0;
}

static long recount_overflow(void *map, u64 *object, struct counted_object *counted, struct recount *of) {
    u64 before = counted->bytes, now;
    if (counted->opener != of->opener || !may_change(counted)) return 0;
    now = length_of(*object);
    if (now == before || __sync_val_compare_and_swap(&counted->bytes, before, now) != before) return 0;
    count_change(of, counted, now - before);
    return 0;
}

// What was reserved becomes what was counted, in one step, so that nobody meets both. What others have reserved by the same file
// may be counted already, if they have changed their MRs; but for a thread that had reserved nothing, since it wrote its request:
// no program does both at once but to exceed a limit. Where there was too much but for these, whoever makes an MR longer is judged
// again, since one of them may have been in flight for another's sake.
__attribute__((noinline)) int recount_memory(u64 id) {
    struct reservation *reserved = find_reservation(current_thread());
    struct kernel_use *use = &openers[(u32)id % opener_slots];
    struct guard_file *it = file_at((u32)id);
    struct recount of = {.opener = id};
    bool replaced = false, own = false, judged;
    u64 room = 0;
    if (use->id != id || !it) return 0;
    use->reregistered = 1;
    bpf_loop(object_slots, recount_slot, &of, 0);
    if (overflowing) bpf_for_each_map_elem(&overflow, recount_overflow, &of, 0);
    if (reserved && reserved->opener == id && reserved->kind == another_length) {
        own = true;
        replaced = reserved->replaced;
        if (!replaced) room = reserved->bytes;
    }
    shift(id, another_length, of.more - room, 1);
    if (room || replaced) end_reservation(reserved);
    judged = replaced || (__s64)of.more > (__s64)room || (it->doubtful && (!own || (__s64)of.more > 0));
    if (judged && exceeds_bytes((u32)id, of.more, own ? it->changing : 0)) judge((u32)id);
    return room || replaced;
}
