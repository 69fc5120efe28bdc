// What was made before this program was attached, found by iterating the files that are open. It counts, and nobody is
// punished for it. An object that is made or destroyed meanwhile is counted once, or not at all. A file that no process had
// open then (in flight in a socket, or mapped only) is found when something is to be made by it.
#pragma once

#include "objects.bpf.h"

enum { most_listed = 1 << 20, no_thread = 1 };
u32 lists_all;  // 1: also what was made by files that were seen being opened, because some of it was missed

// A device's file, not one of events: those take no requests.
static __always_inline bool is_uverbs(struct file *file) {
    char name[12] = {};
    if (!BPF_CORE_READ(file, f_op, write)) return false;
    struct module *owner = BPF_CORE_READ(file, f_op, owner);
    if (!owner || bpf_probe_read_kernel(name, sizeof name - 1, owner->name) != 0) return false;
    return bpf_strncmp(name, 10, "ib_uverbs") == 0;
}

struct listing {
    u64 next, head;
    u64 opener;
    u32 judges, exceeded;
};

static __always_inline bool is_known(u64 object) {
    u32 half = lower_half(object);
    for (u32 probe = 0; probe < object_probes; ++probe)
        if (slot_at(half, probe)->object == object) return true;
    return overflowing && bpf_map_lookup_elem(&overflow, &object);
}

// 1: an enforced limit is exceeded by it, if that is asked.
static __always_inline int list_object(struct ib_uobject *uobject, struct kernel_use *opener, bool judges) {
    struct object it = {(u64)uobject, 0, (u64)BPF_CORE_READ(uobject, uapi_object), BPF_CORE_READ(uobject, object)};
    struct counted_object counted = {.opener = opener->id};
    if (!it.object || is_known(it.address)) return 0;
    counted.kind = kind_of(opener, &it);
    if (counted.kind == kind_driver || counted.kind == UVERBS_OBJECT_COMP_CHANNEL || counted.kind == UVERBS_OBJECT_ASYNC_EVENT) return 0;
    counted.unpinned = counted.kind == kind_mr && pins_nothing(it.object);
    if (!counted.unpinned) counted.bytes = bytes_of(counted.kind, it.object);
    if (guarded) shift(opener->id, counted.kind, counted.bytes, 1);
    count(opener->created, counted.kind);
    add_bytes(opener, counted.kind, counted.bytes);
    if (remember(it.address, &counted) != remembered) subtract(&counted);
    if (!BPF_CORE_READ(uobject, object)) ended(it.address);
    return guarded && judges ? note_excess((u32)opener->id, counted.kind, counted.bytes) : 0;
}

static long list_next(u32 number, struct listing *at) {
    struct kernel_use *opener = &openers[(u32)at->opener % opener_slots];
    struct ib_uobject *uobject;
    if (at->next == at->head || at->next == 0) return 1;
    uobject = (void *)(at->next - bpf_core_field_offset(struct ib_uobject, list));
    at->exceeded |= list_object(uobject, opener, at->judges);
    u64 next = (u64)BPF_CORE_READ(uobject, list.next);
    if (next == at->next) return 1;  // was taken off the list: the next round finds the rest
    at->next = next;
    return 0;
}

// The sidecar finds out whose it is.
static __always_inline void list_guarded(u64 id, struct task_struct *task) {
    struct guard_file *it = begin_file(id, task, 0);
    if (it) await_stamp(it, (u32)id);
}

// The device of the file was removed.
static __always_inline bool is_removed(struct ib_uverbs_file *ufile) { return !BPF_CORE_READ(ufile, device, ib_dev); }

static __always_inline struct kernel_use *list_opener(struct task_struct *task, struct ib_uverbs_file *ufile) {
    bool begins = false;
    u32 pid = BPF_CORE_READ(task, tgid);
    struct kernel_use *use = enter_opener((u64)ufile, pid, BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id), &begins);
    if (!use || !begins) return use;
    if (guarded) list_guarded(use->id, task);
    now_begun(use, true);
    return use;
}

static __always_inline int list_objects(struct ib_uverbs_file *ufile, const struct kernel_use *use, bool judges) {
    struct listing at = {};
    at.opener = use->id;
    at.judges = judges;
    at.head = (u64)ufile + bpf_core_field_offset(struct ib_uverbs_file, uobjects);
    at.next = (u64)BPF_CORE_READ(ufile, uobjects.next);
    bpf_loop(most_listed, list_next, &at, 0);
    return at.exceeded;
}

// --- what is counted although it has ended, because its end was not seen ------------------------

// An object that is there belongs to the file whose entry it is counted in. Until the kernel has destroyed it, it is there.
static __always_inline bool is_there(u64 object, u64 opener) {
    struct ib_uobject *uobject = (void *)object;
    const struct kernel_use *use = &openers[(u32)opener % opener_slots];
    return use->id == opener && (u64)BPF_CORE_READ(uobject, ufile) == use->file && BPF_CORE_READ(uobject, object);
}

// Its file must not end meanwhile, which gives back all that the file has. True: an object of a file that is open; else it is
// dropped: nothing counts for it any more.
static __always_inline bool is_kept(u64 opener, u64 open_file) {
    struct kernel_use *use = &openers[(u32)opener % opener_slots];
    if (opener == open_file || use->id != opener) return false;
    use->has_ended = 1;
    return true;
}

static long drop_object(u32 number, u64 *open_file) {
    struct object_slot *slot = &objects[number % object_slots];
    u64 object = slot->object, opener = slot->counted.opener;
    if (object <= slot_ends || opener == 0 || is_there(object, opener) || is_kept(opener, *open_file) || !begin_end(slot, object)) return 0;
    if (is_there(object, slot->counted.opener)) slot->object = object;  // by now another one, at the same address
    else end_slot(slot);
    return 0;
}

static long drop_overflow(void *map, u64 *object, struct counted_object *counted, u64 *open_file) {
    if (!is_there(*object, counted->opener) && !is_kept(counted->opener, *open_file)) ended(*object);
    return 0;
}

// Of an open file, that cannot end meanwhile; 0: what is of no file, and which open files have some is noted.
static __always_inline void drop_objects(u64 open_file) {
    bpf_loop(object_slots, drop_object, &open_file, 0);
    if (overflowing) bpf_for_each_map_elem(&overflow, drop_overflow, &open_file, 0);
}

static __always_inline bool has_exited(u64 thread) { return BPF_CORE_READ((struct task_struct *)thread, exit_state) != 0; }

// Of a thread whose end was not seen. Its file's objects were listed just now.
static long drop_reservation(u32 number, void *unused) {
    struct reservation *it = &reservations[number % reservation_slots];
    u64 thread = it->thread;
    if (thread <= no_thread || !has_exited(thread)) return 0;
    if (__sync_val_compare_and_swap(&it->thread, thread, no_thread) != thread) return 0;
    if (has_exited(thread)) give_up(it);
    else it->thread = thread;  // by now another one, at the same address
    return 0;
}

static long drop_opening(u32 number, void *unused) {
    struct opening *it = &being_opened[number % opening_slots];
    u64 thread = it->thread;
    if (thread && has_exited(thread)) free_opening(it, thread);
    return 0;
}

static __always_inline void drop_threads(void) {
    bpf_loop(reservation_slots, drop_reservation, 0, 0);
    if (opening_count) bpf_loop(opening_slots, drop_opening, 0, 0);
}

static long drop_file(u32 number, void *unused) {
    struct kernel_use *use = &openers[number % opener_slots];
    u64 id = use->id;
    struct ib_uverbs_file *file = (void *)use->file;
    if (use->created[kind_handle] && (u64)BPF_CORE_READ(file, ucontext, ufile) != (u64)file) retire(use, id);
    return 0;
}

static __always_inline void drop_files(void) { bpf_loop(opener_slots, drop_file, 0, 0); }

// --- the list -----------------------------------------------------------------------------------

static __always_inline void list_file(struct task_struct *task, struct file *file) {
    struct ib_uverbs_file *ufile = BPF_CORE_READ(file, private_data);
    struct kernel_use *use;
    bool seen;
    if (!ufile || !is_uverbs(file) || !BPF_CORE_READ(ufile, ucontext)) return;
    if (is_removed(ufile)) return;
    use = opener_of((u64)ufile);
    seen = use && use->whole;
    if (seen && !lists_all) return;
    if (!use) use = list_opener(task, ufile);
    if (!use || !has_begun(use)) return;  // then the next round finds what it has
    list_objects(ufile, use, seen);
    if (!use->has_ended) return;
    use->has_ended = 0;
    drop_objects(use->id);
}

int count_unseen(u64 id, u32 judges) {
    const struct kernel_use *use = &openers[(u32)id % opener_slots];
    u64 file = use->file;
    return use->id == id && file ? list_objects((struct ib_uverbs_file *)file, use, judges) : 0;
}

// The entry of a file that is not known: a device that is about to be opened, or was before this program was attached. What
// it is for whoever has it now, since nobody tells who opened it. 0: there is no room.
__attribute__((noinline)) u64 enter_file(u64 address) {
    struct ib_uverbs_file *ufile = (void *)address;
    bool open = BPF_CORE_READ(ufile, ucontext) != 0, begins = false;
    struct kernel_use *use = is_removed(ufile) ? 0 : enter_opener(address, current_pid(), bpf_get_current_cgroup_id(), &begins);
    if (!use) return 0;
    if (!begins) return use->id;
    stamp_current(use->id);
    now_begun(use, open);
    if (open) list_objects(ufile, use, false);
    return use->id;
}
