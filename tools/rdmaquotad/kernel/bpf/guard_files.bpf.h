// Files: whose an open device is, for the guard. Decided when it is opened, by cgroup, user and groups. Who is not
// known yet waits for the sidecar; what is made meanwhile counts once it is known. Only users who made too much of that
// before are refused meanwhile.
#pragma once

#include "guard_rows.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 1 << 16);
    __type(key, struct guard_who);
    __type(value, struct guard_stamp);
} stamps SEC(".maps");

u32 guard_asks_cgroup, guard_asks_ids;  // what the policy's matches look at

__attribute__((noinline)) u64 guard_ids(void) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    const struct cred *cred = BPF_CORE_READ(task, cred);
    struct group_info *groups = BPF_CORE_READ(cred, group_info);
    int count = BPF_CORE_READ(groups, ngroups);
    u64 hash = GUARD_HASH_BEGIN;
    if (count > most_hashed_groups) return 0;
    hash = GUARD_HASH_NEXT(hash, BPF_CORE_READ(cred, euid.val));
    hash = GUARD_HASH_NEXT(hash, BPF_CORE_READ(cred, egid.val));
    hash = GUARD_HASH_NEXT(hash, count);
    for (int i = 0; i < most_hashed_groups; ++i) {
        u32 group = 0;
        if (i >= count) break;
        bpf_probe_read_kernel(&group, sizeof group, (char *)groups + bpf_core_field_offset(groups->gid) + i * sizeof group);
        hash = GUARD_HASH_NEXT(hash, group);
    }
    return GUARD_HASH_END(hash);
}

// The device of a file's entry.
__attribute__((noinline)) u32 device_hash(u32 file) {
    const struct kernel_use *use = &openers[file % opener_slots];
    u64 hash = GUARD_HASH_BEGIN;
    for (u32 i = 0; i < device_words; ++i) hash = GUARD_HASH_NEXT(hash, ((const u32 *)use->device)[i]);
    return GUARD_HASH_END((u32)(hash ^ hash >> 32));
}

// Finds or makes the row of a process on a device, and counts one more file. 0, and lost, when there is no room.
__attribute__((noinline)) u32 enter_process(u32 pid, u64 since, u32 device, u32 process_class) {
    u64 process = (u64)pid << 32 | device, before;
    u32 first = slot_of(pid, 0, process_rows, 0);
    struct guard_row *limits = row_at(process_class), *row;
    if (!limits || process_class == 0) return 0;
    for (u32 probe = 0; probe < process_probes; ++probe) {
        u32 at = (first + probe) % process_rows;
        if (at == 0 || !(row = row_at(at))) continue;
        before = __sync_val_compare_and_swap(&row->process, 0, process);
        if (before != 0 && (before != process || row->since != since)) continue;
        if (before == 0) {
            row->since = since;
            row->process_class = process_class;
            row->enforced = limits->enforced;
            row->total = limits->total;
            __builtin_memcpy(row->limit, limits->limit, sizeof row->limit);
        }
        __sync_fetch_and_add(&row->files, 1);
        return at;
    }
    lose();
    return 0;
}

__attribute__((noinline)) int leave_process(u32 row) {
    struct guard_row *of = row_at(row);
    if (!of || of->files == 0 || __sync_fetch_and_add(&of->files, -1) != 1) return 0;
    of->since = 0;
    for (u32 i = 0; i < guard_resources; ++i) of->used[i] = of->refused[i] = 0;
    of->process = 0;
    return 0;
}

// What was made while nobody knew whose it was.
__attribute__((noinline)) int add_held(u32 file, u32 row, u64 sign) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    if (!it || !of) return 0;
    for (u32 i = 0; i < guard_resources; ++i)
        if (it->held[i]) __sync_fetch_and_add(&of->used[i], sign * it->held[i]);
    return 0;
}

// From now on it counts in these rows. The node, the last, may count it already. `count` comes last: by then the rows are
// there.
static __always_inline void adopt_stamp(struct guard_file *it, u32 file, const struct guard_stamp *stamp) {
    u32 first = 0, counted = it->stamp.count;
    if (__sync_val_compare_and_swap(&it->stamped, 0, 1) != 0) return;
    it->process_row = enter_process(it->pid, it->since, it->who.device, stamp->process_class);
    if (it->process_row) it->stamp.rows[first++] = it->process_row;
    for (u32 i = 0; i < guard_depth - 1; ++i) {
        if (i >= stamp->count) break;
        it->stamp.rows[(first + i) % guard_depth] = stamp->rows[i];
    }
    it->stamp.process_class = stamp->process_class;
    it->stamp.deny_errno = stamp->deny_errno;
    it->stamp.exempt = stamp->exempt;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i + counted >= stamp->count + first) break;
        add_held(file, it->stamp.rows[i], 1);
    }
    it->stamp.count = stamp->count + first;
}

static __always_inline struct guard_stamp *stamp_of(u64 cgroup, u64 ids, u32 device) {
    struct guard_who who = {.cgroup = cgroup, .ids = ids, .device = device};
    return bpf_map_lookup_elem(&stamps, &who);
}

// One who is not known counts for the node meanwhile.
static __always_inline void await_stamp(struct guard_file *it, u32 file) {
    struct guard_stamp *node = stamp_of(0, 0, it->who.device);
    if (node) {
        it->stamp.rows[0] = node->rows[0];
        it->stamp.deny_errno = node->deny_errno;
        it->stamp.count = 1;
    }
    it->waits = it->ids && stamp_of(0, it->ids, it->who.device) != 0;
    tell_guard(told_pending, file, 0, 0, 0);
}

// Begins the guard's part of a file that was entered just now.
static __always_inline struct guard_file *begin_file(u64 id, u32 pid, u64 since, u64 cgroup, u64 ids) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id == id) return 0;
    it->pid = pid;
    it->since = since;
    it->who.cgroup = guard_asks_cgroup ? cgroup : guard_any;
    it->who.ids = guard_asks_ids ? ids : guard_any;
    it->ids = (u32)bpf_get_current_uid_gid() ? ids : 0;
    it->who.device = device_hash((u32)id);
    it->stamp.deny_errno = 122;  // EDQUOT
    it->id = id;
    return it;
}

__attribute__((noinline)) int stamp_current(u64 id) {
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct guard_file *it = begin_file(id, current_pid(), BPF_CORE_READ(task, group_leader, start_boottime),
                                       bpf_get_current_cgroup_id(), guard_ids());
    struct guard_stamp *stamp = 0;
    if (!it) return 0;
    if (it->who.ids) stamp = stamp_of(it->who.cgroup, it->who.ids, it->who.device);
    if (!stamp && it->who.ids != guard_any) stamp = stamp_of(it->who.cgroup, guard_any, it->who.device);
    if (stamp) adopt_stamp(it, (u32)id, stamp);
    else await_stamp(it, (u32)id);
    return 0;
}

static __always_inline void settle_file(const struct settle_request *request) {
    struct guard_file *it = file_at((u32)request->id);
    struct guard_stamp stamp = request->stamp;
    if (it && it->id == request->id) adopt_stamp(it, (u32)request->id, &stamp);
}

// The file is closed: what it still counts, because an end was missed, is given back.
__attribute__((noinline)) int forget_file(u64 id) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        add_held((u32)id, it->stamp.rows[i], -1ULL);
    }
    if (it->process_row) leave_process(it->process_row);
    __builtin_memset(it, 0, sizeof *it);
    return 0;
}
