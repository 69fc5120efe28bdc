// Open device files and their tenants. A file's tenant is resolved when it is opened, by cgroup, user and groups. An opener that is not
// resolved gets EAGAIN until the sidecar has resolved it; without a running sidecar it counts in `default`.
#pragma once

#include "guard_waiting.bpf.h"

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

// A row's word for a process on a device: a hash of both, and in the lowest bits how many files the process has open.
enum { files_bits = 16, most_attempts = 64 };

static __always_inline u64 process_word(u32 pid, u64 since, u32 uverbs) {
    u64 hash = GUARD_HASH_BEGIN;
    hash = GUARD_HASH_NEXT(hash, pid);
    hash = GUARD_HASH_NEXT(hash, since);
    hash = GUARD_HASH_NEXT(hash, since >> 32);
    hash = GUARD_HASH_NEXT(hash, uverbs);
    return GUARD_HASH_END(hash) << files_bits;
}

// Counts one more file. 0 when the row is another's, or is free and not to be begun.
__attribute__((noinline)) int share_row(u32 at, u64 process, u32 begins) {
    struct guard_row *row = row_at(at);
    if (at == 0 || at >= process_rows || !row) return 0;
    for (u32 i = 0; i < most_attempts; ++i) {
        u64 before = row->process;
        if (before == 0 ? !begins : before >> files_bits != process >> files_bits) return 0;
        if (__sync_val_compare_and_swap(&row->process, before, (before ? before : process) + 1) != before) continue;
        __sync_fetch_and_add(&row->entered, 1);
        return 1;
    }
    return 0;
}

// Counts one more file in the first row that is the process's own, or, if it `begins` one, that is free. 0: there is none. Said
// before it is done, so that the sidecar's audit does not free the row in between.
__attribute__((noinline)) u32 share_first(u32 file, u64 process, u32 begins) {
    struct guard_file *it = file_at(file);
    if (!it) return 0;
    u32 first = process_slot(it->pid, it->since);
    for (u32 probe = 0; probe < process_probes; ++probe) {
        u32 at = modulo(first + probe, process_rows);
        it->enters_row = at;
        if (share_row(at, process, begins)) return at;
    }
    return 0;
}

// Finds or makes the row of the file's process on its device, and counts one more file. 0, and lost, when there is no room. One
// that it has already comes first, since one before that may have become free. Threads that come at once write the same to it.
__attribute__((noinline)) u32 enter_process(u32 file, u32 process_class) {
    struct guard_file *it = file_at(file);
    struct guard_row *limits = row_at(process_class), *row;
    if (!it || !limits || process_class == 0) return 0;
    u64 process = process_word(it->pid, it->since, it->who.uverbs);
    u32 at = share_first(file, process, 0);
    if (!at) at = share_first(file, process, 1);
    if (!at) lose();
    row = row_at(at);
    if (!at || !row) return 0;
    row->pid = it->pid;
    row->since = it->since;
    row->process_class = process_class;
    __builtin_memcpy(row->limit, limits->limit, sizeof row->limit);
    row->total = limits->total;
    row->enforced = limits->enforced;
    return at;
}

__attribute__((noinline)) int leave_process(u32 row) {
    struct guard_row *of = row_at(row);
    if (!of) return 0;
    for (u32 i = 0; i < most_attempts; ++i) {
        u64 before = of->process, after = before - 1;
        if ((before & ((1 << files_bits) - 1)) == 0) return 0;
        if ((after & ((1 << files_bits) - 1)) == 0) after = row_clears;
        if (__sync_val_compare_and_swap(&of->process, before, after) != before) continue;
        if (after != row_clears) return 0;
        of->since = of->pid = of->enforced = of->exceeded = 0;
        for (u32 rate = 0; rate < guard_rates; ++rate) of->pace[rate].paid = 0;
        for (u32 at = 0; at < guard_resources; ++at) of->used[at] = of->refused[at] = 0;
        of->process = 0;
        return 0;
    }
    return 0;
}

// From now on it counts in these rows. False: it does in others, or is another file.
static __always_inline bool adopt_stamp(struct guard_file *it, u64 id, const struct guard_stamp *stamp) {
    u32 file = id, first = 0;
    if (__sync_val_compare_and_swap(&it->unstamped, id, 0) != id) return false;
    it->process_row = enter_process(file, stamp->process_class);
    if (it->process_row) it->stamp.rows[first++] = it->process_row;
    else if (stamp->process_class && guard_mode == guard_deny)
        openers[file % opener_slots].forbidden = 1;  // no room to count the process
    for (u32 i = 0; i < guard_depth - 1; ++i)
        it->stamp.rows[(first + i) % guard_depth] = i < stamp->count ? stamp->rows[i] : 0;
    it->stamp.process_class = stamp->process_class;
    it->stamp.deny_errno = stamp->deny_errno;
    it->stamp.exempt = stamp->exempt;
    it->stamp.count = stamp->count + first;
    now_known(it, file);
    return true;
}

static __always_inline struct guard_stamp *stamp_of(u64 cgroup, u64 ids, u32 uverbs, u32 uid) {
    struct guard_who who = {.cgroup = cgroup, .ids = ids, .uverbs = uverbs, .uid = uid};
    return bpf_map_lookup_elem(&stamps, &who);
}

static __always_inline void tell_unknown(const struct guard_file *it) {
    struct guard_unknown *told = bpf_ringbuf_reserve(&unknown, sizeof *told, 0);
    if (!told) return;  // the program tries again, and the sidecar looks through unresolved files each second
    told->who = it->who;
    told->pid = it->pid;
    told->tid = it->tid;
    bpf_ringbuf_submit(told, 0);
}

// An unresolved file counts in the node's row; without a running sidecar in the rows of `default`.
static __always_inline void await_stamp(struct guard_file *it, u32 file) {
    struct guard_stamp *of_default = stamp_of(0, 0, it->who.uverbs, 0);
    u32 count = of_default ? of_default->count : 0, first = 0;
    if (count && !is_alone()) first = count - 1;
    for (u32 i = 0; i < guard_depth; ++i) {
        u32 at = first + i;
        asm volatile("" : "+r"(at));  // so that the verifier sees the bound in the register that is used
        if (!of_default || at >= count || at >= guard_depth) break;
        it->waiting.rows[i] = of_default->rows[at];
        it->waiting.count = i + 1;
        it->waiting.deny_errno = of_default->deny_errno;
    }
    tell_unknown(it);
}

// The sidecar may still be writing whose an earlier file was that had this place: for a microsecond, unless it is preempted.
enum { most_waits = 4096 };
static __always_inline void await_settled(const struct guard_file *it) {
    for (u32 i = 0; i < most_waits; ++i)
        if (!*(const volatile u64 *)&it->settling) break;
}

static __always_inline void forget(struct guard_file *it) { __builtin_memset(it, 0, offsetof(struct guard_file, settling)); }

// Begins the guard's part of a file that was entered just now, for the process that has it.
static __always_inline struct guard_file *begin_file(u64 id, struct task_struct *task, u64 ids) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id == id) return 0;
    await_settled(it);
    it->pid = BPF_CORE_READ(task, tgid);
    it->tid = BPF_CORE_READ(task, pid);
    it->since = BPF_CORE_READ(task, group_leader, start_boottime);
    it->uid = BPF_CORE_READ(task, cred, euid.val);
    it->gid = BPF_CORE_READ(task, cred, egid.val);
    it->who.cgroup = guard_asks_cgroup ? BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id) : guard_any;
    it->who.ids = guard_asks_ids ? ids : guard_any;
    it->who.uid = guard_asks_ids ? it->uid : 0;
    it->who.uverbs = openers[(u32)id % opener_slots].uverbs;
    it->waiting.deny_errno = 122;  // EDQUOT
    it->closely = 1;             // until it has a context, since without one it is forgotten after each refusal
    it->unstamped = id;
    it->id = id;
    return it;
}

__attribute__((noinline)) int stamp_current(u64 id) {
    struct guard_file *it = begin_file(id, (struct task_struct *)bpf_get_current_task(), guard_ids());
    struct guard_stamp *stamp = 0;
    if (!it) return 0;
    if (it->who.ids) stamp = stamp_of(it->who.cgroup, it->who.ids, it->who.uverbs, it->who.uid);
    if (!stamp && it->who.ids != guard_any) stamp = stamp_of(it->who.cgroup, guard_any, it->who.uverbs, 0);
    if (!stamp && !it->who.ids) stamp = stamp_of(0, 0, it->who.uverbs, 0);  // has too many groups to be told apart
    if (stamp) adopt_stamp(it, id, stamp);
    else await_stamp(it, (u32)id);
    return 0;
}

static __always_inline void settle_file(const struct settle_request *request) {
    struct guard_file *it = file_at((u32)request->id);
    struct guard_stamp stamp = request->stamp;
    bool adopted;
    guard_seen_ns = bpf_ktime_get_ns();
    if (!it || !request->id) return;
    __sync_fetch_and_add(&it->settling, 1);
    adopted = adopt_stamp(it, request->id, &stamp);
    if (adopted && !it->id) forget(it);  // closed meanwhile; the audit frees the process's row
    __sync_fetch_and_add(&it->settling, -1ULL);
}

// The file is closed: what it still counts, because an end was missed, is given back.
__attribute__((noinline)) int forget_file(u64 id) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id) return 0;
    __sync_lock_test_and_set(&it->unstamped, 0);  // from now on the sidecar says nothing of it
    await_settled(it);  // else what waited would move to rows after it was given back there
    give_all_back(it, (u32)id);
    if (it->process_row) leave_process(it->process_row);
    forget(it);
    return 0;
}
