// What threads were allowed to make and have not made yet. One at most for each thread: it becomes the object's, or is
// given back at the end of the ioctl; where another security module refused that, at the thread's next one, or its end. Where
// it may have been made unseen, because the kernel skipped a program, that is found out first.
#pragma once

#include "guard_excess.bpf.h"
#include "guard_opening.bpf.h"
#include "uses.bpf.h"

struct reservation reservations[reservation_slots];

// More objects than have room in `overflow` (objects.bpf.h), less one for each thread that may be making one, cannot be counted.
enum { overflow_entries = 1 << 20, most_overflowing = overflow_entries - reservation_slots };
u64 overflowing;  // how many are there, or about to be

// What is seldom so.
struct {
    u32 displaced;  // how many reservations are not in the first slot of their thread
    u32 crowded;    // there were once too many objects
} unusual __attribute__((aligned(sizeof(u64))));

static __always_inline bool is_usual(void) {
    u64 both;
    __builtin_memcpy(&both, &unusual, sizeof both);  // one read
    return both == 0;
}

static __always_inline struct reservation *reservation_at(u64 thread, u32 probe) {
    return &reservations[slot_of(lower_half(thread), 6, reservation_slots, probe)];
}

static __always_inline struct reservation *find_reservation(u64 thread) {
    struct reservation *it = reservation_at(thread, 0);
    if (it->thread == thread) return it;
    if (!unusual.displaced) return 0;
    for (u32 probe = 1; probe < reservation_probes; ++probe) {
        it = reservation_at(thread, probe);
        if (it->thread == thread) return it;
    }
    return 0;
}

static __always_inline bool is_just(const struct reservation *it, u64 thread, u64 id, u32 kind, u64 bytes) {
    return it->thread == thread && it->opener == id && it->kind == kind && it->bytes == bytes;
}

// In the thread's first slot.
static __always_inline bool is_reserved(u64 id, u32 kind, u64 bytes) {
    u64 thread = current_thread();
    return is_just(reservation_at(thread, 0), thread, id, kind, bytes);
}

// What this thread has reserved for an object of this kind.
static __always_inline u64 reserved_bytes(u64 id, u32 kind) {
    const struct reservation *it = find_reservation(current_thread());
    return it && it->opener == id && it->kind == kind ? it->bytes : 0;
}

static __always_inline void note_change(u64 id, u64 bytes) {
    struct guard_file *of = file_at((u32)id);
    if (of && of->id == id) __sync_fetch_and_add(&of->changing, bytes);
}

static __always_inline void end_reservation(struct reservation *it) {
    if (it->kind == another_length) note_change(it->opener, -it->bytes);
    if (it->displaced) __sync_fetch_and_add(&unusual.displaced, -1);
    it->thread = 0;
}

// A file without a context keeps no entry: else files that cost nothing could fill the table. Only then may another thread open
// it.
__attribute__((noinline)) int abandon(u64 id) {
    struct kernel_use *use = &openers[(u32)id % opener_slots];
    u64 file = use->file;
    if (use->id != id) return 0;
    if (use->created[kind_handle] == 0 && !has_context(file) && begin_ending(use, id)) {
        forget_file(id);
        clear(use);
    }
    if (opening_count) end_opening(file, false);
    return 0;
}

// 1: the file has a context, whose opening was not seen (probes.bpf.h); from now on it counts.
__attribute__((noinline)) int opened_unseen(u64 id) {
    struct kernel_use *use = &openers[(u32)id % opener_slots];
    struct guard_file *it = file_at((u32)id);
    if (!it || use->id != id || use->created[kind_handle] || !has_context(use->file)) return 0;
    use->whole = whole_unseen;  // before it is counted, which opened() may be about to do
    if (__sync_val_compare_and_swap(&use->created[kind_handle], 0, 1) != 0) return 0;
    if (has_moved(it)) now_simple(it);
    tell(0, use->pid);
    return 1;
}

static __always_inline void give_up(struct reservation *it) {
    u64 id = it->opener;
    u32 kind = it->kind;
    bool opened = kind == kind_handle && opened_unseen(id);
    if (kind < unknown_kind && !it->replaced && !opened) uncharge(id, kind, it->bytes);
    end_reservation(it);
    abandon(id);
}

// Counts the file's objects whose beginning was not seen (guard_stock.bpf.h). `judges`: who exceeds a limit by them is noted;
// then 1.
int count_unseen(u64 id, u32 judges);
// Counts what a re-registration has changed of the file's MRs, and ends its reservation: then 1 (guard_rereg.bpf.h).
int recount_memory(u64 id);

// What was reserved may have been made, unseen.
static __always_inline void settle_reservation(u64 thread) {
    struct reservation *it = find_reservation(thread);
    if (!it || (it->kind == another_length && recount_memory(it->opener))) return;
    if (it->kind != kind_handle && it->kind != another_length) count_unseen(it->opener, it->kind >= unknown_kind);
    give_up(it);
}

// What failed may have changed an MR before it did.
static __always_inline void give_up_reservation(u64 thread) {
    struct reservation *it = find_reservation(thread);
    if (!it || (it->kind == another_length && recount_memory(it->opener))) return;
    give_up(it);
}

// What a method makes that is not known is learnt from the file's first object by it; the next needs room for that.
static __always_inline u32 learnt_kind(u32 file, u32 kind, u64 method) {
    const struct guard_file *it;
    if (kind != unknown_kind) return kind;
    it = file_at(file);
    return it && it->learnt && it->learnt_by == (u32)method ? it->learnt - 1 : kind;
}

static __always_inline void learn(u64 id, u32 kind, u64 method) {
    struct guard_file *it = file_at((u32)id);
    if (!it || it->id != id) return;
    it->learnt_by = method;
    it->learnt = kind + 1;
}

static __always_inline void fill(struct reservation *it, u64 id, u32 kind, u64 bytes) {
    it->opener = id;
    it->bytes = bytes;
    it->kind = kind;
    it->displaced = it->replaced = it->zero[0] = it->zero[1] = 0;
}

enum { left_over = -1 };  // the thread has a reservation, which must be settled first

static __always_inline int refuse_crowded(void) {
    lose();
    return uncountable();
}

// What reserve() does, for every kind and in any slot.
__attribute__((noinline)) int reserve_anywhere(u64 id, u32 asked, u64 bytes) {
    u64 thread = current_thread();
    u32 kind = learnt_kind((u32)id, asked, bytes);
    int refused;
    if (kind != asked) bytes = 0;
    if (find_reservation(thread)) return left_over;
    if (unusual.crowded && kind != kind_handle && overflowing >= most_overflowing) return refuse_crowded();
    if (kind < unknown_kind && (refused = charge((u32)id, kind, bytes)) != 0) return refused;
    for (u32 probe = 0; probe < reservation_probes; ++probe) {
        struct reservation *it = reservation_at(thread, probe);
        if (__sync_val_compare_and_swap(&it->thread, 0, thread) != 0) continue;
        fill(it, id, kind, bytes);
        it->displaced = probe != 0;
        if (probe != 0) __sync_fetch_and_add(&unusual.displaced, 1);
        if (kind == another_length) note_change(id, bytes);
        return 0;
    }
    lose();
    if (kind < unknown_kind) uncharge(id, kind, bytes);
    return uncountable();  // else the commit would take an honest program for another
}

// Charges, and remembers what for: mostly in the thread's first slot, which is free then. 0, the errno to refuse with, or
// `left_over`.
__attribute__((noinline)) int reserve(u64 id, u32 kind, u64 bytes) {
    u64 thread = current_thread();
    struct reservation *it = reservation_at(thread, 0);
    int refused;
    if (kind >= kind_count || !is_usual()) return reserve_anywhere(id, kind, bytes);
    if (__sync_val_compare_and_swap(&it->thread, 0, thread) != 0) return reserve_anywhere(id, kind, bytes);
    refused = charge((u32)id, kind, bytes);
    fill(it, id, kind, bytes);
    if (refused) it->thread = 0;
    return refused;
}

// What is made too much may have begun before the guard.
static __always_inline bool is_spared(void) { return guard_judges == 0 || bpf_ktime_get_boot_ns() < guard_judges; }

// Who makes more than it may, by a way that was not looked at before, is killed, and its file makes nothing more.
__attribute__((noinline)) int judge(u32 file) {
    struct guard_file *it = file_at(file);
    if (!it || guard_mode != guard_deny || is_spared()) return 0;
    openers[file % opener_slots].forbidden = 1;
    bpf_send_signal(9);
    tell_guard(told_killed, file, stamp_in_force(it)->rows[0], 0, 0);
    return 0;
}

// By a file that found no room to be counted.
static __always_inline void judge_uncounted(void) {
    if (guarded && guard_mode == guard_deny && !is_spared()) bpf_send_signal(9);
}

// An MR in place of another one, which ends before the call does: then it is judged. Its bytes were reserved, as far as the
// request told how many.
static __always_inline bool replaces(struct reservation *it, u64 id, u64 bytes) {
    u64 room;
    if (!it || it->opener != id || it->kind != another_length) return false;
    room = it->bytes;
    shift(id, kind_mr, 0, 1);
    shift(id, another_length, bytes - room, 1);
    note_change(id, bytes - room);
    it->bytes = bytes;
    it->replaced = bytes > room;
    if (!it->replaced) end_reservation(it);
    return true;
}

// The object is made, by just what was reserved for it or by another way.
__attribute__((noinline)) int made_otherwise(u64 id, u32 kind, u64 bytes, u64 thread, u32 mark) {
    struct reservation *it = find_reservation(thread);
    if (it && it->opener == id && it->kind == kind && it->bytes >= bytes) {
        u64 more = it->bytes - bytes;
        end_reservation(it);
        if (more) {  // what is not pinned
            shift(id, kind, 0, 1);
            uncharge(id, kind, more);
        }
        return 0;
    }
    if (mark & mark_rereg && kind == kind_mr && replaces(it, id, bytes)) return 0;
    if (it && it->opener == id && it->kind == unknown_kind) learn(id, kind, it->bytes);
    if (it) give_up(it);
    if (!charge_made(id, kind, bytes)) return 0;
    judge((u32)id);
    return 1;
}

// 1: it was judged.
static __always_inline int made(u64 id, u32 kind, u64 bytes, u64 thread, u32 mark) {
    struct reservation *it = reservation_at(thread, 0);
    // In a thread's first slot, none of its own is displaced.
    if (!is_just(it, thread, id, kind, bytes)) return made_otherwise(id, kind, bytes, thread, mark);
    it->thread = 0;
    return 0;
}
