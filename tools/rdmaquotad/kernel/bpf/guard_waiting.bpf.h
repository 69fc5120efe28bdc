// Open device files whose tenant is not resolved yet: files from before the guard, and files that were opened by write(2). Threads
// charge them without waiting, and each amount counts exactly once: a thread that began to charge before the file was resolved
// continues in the rows where the file waits, and the last such thread moves the waiting amounts.
#pragma once

#include "guard_rows.bpf.h"

enum { waits_threads = waits_moved - 1 };

u64 guard_seen_ns;  // when the sidecar last did what it does each second, by the monotonic clock; 0: it has ended

static __always_inline bool is_alone(void) { return bpf_ktime_get_ns() - guard_seen_ns >= guard_alone_ns; }

static __always_inline bool has_moved(const struct guard_file *it) { return it->waits & waits_moved; }
static __always_inline bool is_owner_known(const struct guard_file *it) { return it->waits & waits_known; }

// Something of it is about to be subtracted.
static __always_inline void note_return(struct guard_file *it) { __sync_fetch_and_add(&it->returns, 1); }

// Refuses every creation through an unresolved file while the sidecar runs. Without a sidecar the file counts in `default`, unless the
// device appeared later and has no rows.
static __always_inline bool refuses_unknown(const struct guard_file *it) {
    return guard_mode == guard_deny && !is_owner_known(it) && (!it->waiting.count || !is_alone());
}

// Where it counts from now on.
static __always_inline const struct guard_stamp *stamp_in_force(const struct guard_file *it) {
    return is_owner_known(it) ? &it->stamp : &it->waiting;
}

// Chosen once, before a loop: else the verifier follows both in each of its rounds.
static __always_inline const struct guard_stamp *waiting_or_not(const struct guard_file *it, bool waits) {
    return !it ? 0 : waits ? &it->waiting : &it->stamp;
}
static __always_inline u64 *held_by(struct guard_file *it, bool waits) { return waits ? it->waited : it->held; }

// Into, or with a sign of -1 out of, what a row uses: what the file holds, or what waited.
__attribute__((noinline)) int add_amounts(u32 file, u32 row, bool waited, u64 sign) {
    struct guard_file *it = file_at(file);
    struct guard_row *of = row_at(row);
    const u64 *amounts;
    if (!it || !of) return 0;
    amounts = held_by(it, waited);
    for (u32 i = 0; i < guard_resources; ++i)
        if (amounts[i]) __sync_fetch_and_add(&of->used[i], sign * amounts[i]);
    return 0;
}

// The same for all rows of a stamp but the last `kept` ones.
static __always_inline void add_to_stamp(const struct guard_stamp *stamp, u32 file, bool waited, u32 kept, u64 sign) {
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i + kept >= stamp->count) break;
        add_amounts(file, stamp->rows[i], waited, sign);
    }
}

// Its context is open, and what waited has moved: from now on charge() does it at once, unless it is exempt.
static __always_inline void now_simple(struct guard_file *it) { it->closely = it->stamp.exempt; }

// By one thread, when no other counts in the old way any more. The node, the last of both, goes on counting it.
__attribute__((noinline)) int move_waited(u32 file) {
    struct guard_file *it = file_at(file);
    u32 kept;
    if (!it || __sync_val_compare_and_swap(&it->waits, waits_known, waits_known | waits_moved) != waits_known) return 0;
    kept = it->waiting.count != 0;
    add_to_stamp(&it->stamp, file, true, kept, 1);
    add_to_stamp(&it->waiting, file, true, kept, -1ULL);
    if (openers[file % opener_slots].created[kind_handle]) now_simple(it);
    return 0;
}

static __always_inline void leave_waiting(struct guard_file *it, u32 file) {
    u32 after = __sync_fetch_and_add(&it->waits, -1) - 1;
    if ((after & waits_known) && !(after & waits_threads)) move_waited(file);
}

// True: the thread counts in the old way, until it leaves.
static __always_inline bool begin_waiting(struct guard_file *it, u32 file) {
    if (has_moved(it)) return false;
    if (!(__sync_fetch_and_add(&it->waits, 1) & waits_known)) return true;
    leave_waiting(it, file);
    return false;
}

// The file's stamp is complete.
static __always_inline void now_known(struct guard_file *it, u32 file) {
    if (!(__sync_fetch_and_or(&it->waits, waits_known) & waits_threads)) move_waited(file);
}

// What the file still counts is given back; nothing of it moves any more.
static __always_inline void give_all_back(struct guard_file *it, u32 file) {
    u32 before = __sync_fetch_and_or(&it->waits, waits_known | waits_moved);
    note_return(it);
    if (before & waits_known) add_to_stamp(&it->stamp, file, false, 0, -1ULL);
    add_to_stamp(waiting_or_not(it, !(before & waits_moved)), file, true, 0, -1ULL);
}
