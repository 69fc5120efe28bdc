// What was made before this program was attached, found by iterating the files that are open. It counts, and nobody is
// punished for it. An object that is made or destroyed meanwhile is counted once, or not at all.
#pragma once

#include "guard_look.bpf.h"

enum { most_listed = 1 << 20 };

struct listing {
    u64 next, head;
    u64 opener;
    u32 objects;
};

static __always_inline bool is_known(u64 object) {
    u32 half = lower_half(object);
    for (u32 probe = 0; probe < object_probes; ++probe)
        if (slot_at(half, probe)->object == object) return true;
    return any_overflow && bpf_map_lookup_elem(&overflow, &object);
}

static __always_inline void list_object(struct ib_uobject *uobject, struct kernel_use *opener) {
    struct object it = {(u64)uobject, 0, (u64)BPF_CORE_READ(uobject, uapi_object), BPF_CORE_READ(uobject, object)};
    struct counted_object counted = {.opener = opener->id};
    if (!it.object || is_known(it.address)) return;
    counted.kind = kind_of(opener, &it);
    if (counted.kind == kind_driver || counted.kind == UVERBS_OBJECT_COMP_CHANNEL || counted.kind == UVERBS_OBJECT_ASYNC_EVENT) return;
    counted.bytes = bytes_of(counted.kind, it.object);
    if (guarded) charge_made((u32)opener->id, counted.kind, counted.bytes);
    count(opener->created, counted.kind);
    add_bytes(opener, counted.kind, counted.bytes);
    remember(it.address, &counted);
    if (!BPF_CORE_READ(uobject, object)) ended(it.address);
}

static long list_next(u32 number, struct listing *at) {
    struct kernel_use *opener = &openers[(u32)at->opener % opener_slots];
    struct ib_uobject *uobject;
    if (at->next == at->head || at->next == 0) return 1;
    uobject = (void *)(at->next - bpf_core_field_offset(struct ib_uobject, list));
    list_object(uobject, opener);
    u64 next = (u64)BPF_CORE_READ(uobject, list.next);
    if (next == at->next) return 1;  // was taken off the list: the next round finds the rest
    at->next = next;
    return 0;
}

// The sidecar finds out whose it is.
static __always_inline void list_guarded(u64 id, u32 pid, u64 since, u64 cgroup) {
    struct guard_file *it = begin_file(id, pid, since, cgroup, 0);
    if (!it) return;
    await_stamp(it, (u32)id);
    charge_made((u32)id, kind_handle, 0);
}

static __always_inline void list_file(struct task_struct *task, struct file *file) {
    struct ib_uverbs_file *ufile = BPF_CORE_READ(file, private_data);
    u64 cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
    struct ib_device *device;
    struct kernel_use *use;
    struct listing at = {};
    if (!ufile || !is_uverbs(file) || !BPF_CORE_READ(ufile, ucontext)) return;
    device = BPF_CORE_READ(ufile, device, ib_dev);
    if (!device) return;
    use = opener_of((u64)ufile);
    if (use && use->whole) return;
    if (!use) {
        u32 pid = BPF_CORE_READ(task, tgid);
        use = enter_opener((u64)ufile, device, pid, cgroup, 1);
        if (!use) return;
        if (guarded) list_guarded(use->id, pid, BPF_CORE_READ(task, group_leader, start_boottime), cgroup);
    }
    at.opener = use->id;
    at.head = (u64)ufile + bpf_core_field_offset(struct ib_uverbs_file, uobjects);
    at.next = (u64)BPF_CORE_READ(ufile, uobjects.next);
    bpf_loop(most_listed, list_next, &at, 0);
}
