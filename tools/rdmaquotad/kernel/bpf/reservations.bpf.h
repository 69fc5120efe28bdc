// What threads were allowed to make and have not made yet. One at most for each thread: it becomes the object's, or is
// given back at the end of the ioctl; where another security module refused that, at the thread's next one, or its end.
#pragma once

#include "guard_files.bpf.h"

struct reservation reservations[reservation_slots];
u32 displaced;  // how many are not in the first slot of their thread

static __always_inline struct reservation *reservation_at(u64 thread, u32 probe) {
    return &reservations[slot_of((u32)thread, 0, reservation_slots, probe)];
}

static __always_inline struct reservation *find_reservation(u64 thread) {
    struct reservation *it = reservation_at(thread, 0);
    if (it->thread == thread) return it;
    if (!displaced) return 0;
    for (u32 probe = 1; probe < reservation_probes; ++probe) {
        it = reservation_at(thread, probe);
        if (it->thread == thread) return it;
    }
    return 0;
}

static __always_inline void end_reservation(struct reservation *it) {
    if (it->displaced) __sync_fetch_and_add(&displaced, -1);
    it->thread = 0;
}

static __always_inline void give_up(struct reservation *it) {
    uncharge(it->opener, it->kind, it->bytes);
    end_reservation(it);
}

static __always_inline void give_up_reservation(void) {
    struct reservation *it = find_reservation(bpf_get_current_pid_tgid());
    if (it) give_up(it);
}

// Charges, and remembers what for. 0, or the errno to refuse with.
__attribute__((noinline)) int reserve(u64 id, u32 kind, u64 bytes) {
    u64 thread = bpf_get_current_pid_tgid();
    int refused;
    give_up_reservation();
    if ((refused = charge((u32)id, kind, bytes)) != 0) return refused;
    for (u32 probe = 0; probe < reservation_probes; ++probe) {
        struct reservation *it = reservation_at(thread, probe);
        if (__sync_val_compare_and_swap(&it->thread, 0, thread) != 0) continue;
        it->displaced = probe != 0;
        if (probe != 0) __sync_fetch_and_add(&displaced, 1);
        it->opener = id;
        it->bytes = bytes;
        it->kind = kind;
        return 0;
    }
    lose();
    uncharge(id, kind, bytes);  // the commit charges
    return 0;
}

// Who makes more than it may, by a way that was not looked at before, is killed, and its file makes nothing more.
__attribute__((noinline)) int judge(u32 file) {
    struct guard_file *it = file_at(file);
    if (!it || guard_mode != guard_deny || !guard_judges) return 0;
    it->poisoned = 1;
    bpf_send_signal(9);
    tell_guard(told_killed, file, it->stamp.rows[0], 0, 0);
    return 0;
}

// The object is made, by what was reserved for it, or by another way.
__attribute__((noinline)) int made(u64 id, u32 kind, u64 bytes) {
    struct reservation *it = find_reservation(bpf_get_current_pid_tgid());
    u32 file = (u32)id;
    if (it && it->opener == id && it->kind == kind && it->bytes >= bytes) {
        u64 more = it->bytes - bytes;
        end_reservation(it);
        if (more) {  // what is not pinned
            charge_made(file, kind, bytes);
            uncharge(id, kind, bytes + more);
        }
        return 0;
    }
    if (it) give_up(it);
    if (charge_made(file, kind, bytes) && kind <= kind_second_handle) judge(file);
    return 0;
}

static __always_inline void committed(const struct counted_object *counted) {
    made(counted->opener, counted->kind, counted->bytes);
}
