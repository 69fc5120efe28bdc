// What was made anyhow, by a way that the look could not refuse: who exceeds a limit by it, and what it makes nothing more for.
#pragma once

#include "guard_pace.bpf.h"

enum { looks_at_excess = 64 };

// The row of the tenant that a file belongs to; none while that is not known.
static __always_inline struct guard_row *own_row(const struct guard_file *it) {
    return is_owner_known(it) ? row_at(it->stamp.rows[it->process_row ? 1 : 0]) : 0;
}

// By which rows it is judged; none where it is exempt.
static __always_inline const struct guard_stamp *judging_stamp(const struct guard_file *it) {
    const struct guard_stamp *stamp = it ? stamp_in_force(it) : 0;
    return stamp && !stamp->exempt ? stamp : 0;
}

__attribute__((noinline)) int row_lacks(u32 row, u32 kind, u64 bytes) {
    struct guard_row *of = row_at(row);
    return of ? lacks(of, row, kind, bytes, 0) : 0;
}

// Of what was made anyhow: what the row has too much of, + 1; 0: nothing. Looks more than once, since another's request may
// have raised the row for a moment, to be refused.
__attribute__((noinline)) int row_excess(u32 row, u32 kind, u64 bytes) {
    u32 lacking = 0;
    for (u32 i = 0; i < looks_at_excess; ++i)
        if ((lacking = row_lacks(row, kind, bytes)) == 0) return 0;
    return lacking;
}

// 1: the limit is enforced, and the process's or the tenant's row names from now on what was exceeded.
__attribute__((noinline)) int blame(u32 file, u32 row, u32 lacking) {
    struct guard_row *of = row_at(row), *blamed;
    struct guard_file *it = file_at(file);
    if (!of || !of->enforced || !it) return 0;
    blamed = row < process_rows ? of : own_row(it);
    if (blamed) __sync_fetch_and_or(&blamed->exceeded, 1U << (lacking - 1) % guard_resources);
    return 1;
}

__attribute__((noinline)) int row_exceeds(u32 file, u32 row, u32 kind, u64 bytes) {
    u32 lacking = row_excess(row, kind, bytes);
    if (!lacking) return 0;
    tell_guard(told_exceeded, file, row, lacking - 1, bytes);
    return blame(file, row, lacking);
}

// The same of what was made unseen. Nobody is told, since it is not known who did.
__attribute__((noinline)) int note_excess(u32 file, u32 kind, u64 bytes) {
    const struct guard_stamp *stamp = judging_stamp(file_at(file));
    int exceeded = 0;
    for (u32 i = 0; stamp && i < guard_depth; ++i) {
        u32 lacking;
        if (i >= stamp->count) break;
        lacking = row_excess(stamp->rows[i], kind, bytes);
        if (lacking) exceeded |= blame(file, stamp->rows[i], lacking);
    }
    return exceeded;
}

__attribute__((noinline)) int exceeds(u32 file, u32 kind, u64 bytes) {
    const struct guard_stamp *stamp = judging_stamp(file_at(file));
    int exceeded = 0;
    if (!stamp) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= stamp->count) break;
        exceeded |= row_exceeds(file, stamp->rows[i], kind, bytes);
    }
    return exceeded;
}

// Takes what was made anyhow. 1: an enforced limit is exceeded.
static __always_inline int charge_made(u64 id, u32 kind, u64 bytes) {
    shift(id, kind, bytes, 1);
    return exceeds((u32)id, kind, bytes);
}

// The first of these resources that the row has too much of, + 1; 0: none.
__attribute__((noinline)) u32 excess_of(u32 row, u32 resources) {
    const struct guard_row *of = row_at(row);
    if (!of || !of->enforced) return 0;
    for (u32 resource = 0; resource < guard_resources; ++resource)
        if (resources & 1U << resource && !has_room(of, row, resource, 0)) return resource + 1;
    return 0;
}

// While there is more than the file's tenant or those above it may have of what it once exceeded: the errno to refuse with;
// else it could do so again by each new file.
__attribute__((noinline)) int tenant_refuses_more(u32 file) {
    struct guard_file *it = file_at(file);
    struct guard_row *own = it ? own_row(it) : 0;
    u32 exceeded = own ? own->exceeded : 0, excess;
    if (!exceeded) return 0;
    for (u32 i = 0; i < guard_depth; ++i) {
        if (i >= it->stamp.count) break;
        u32 row = it->stamp.rows[i];
        if (row >= process_rows && (excess = excess_of(row, exceeded)) != 0) return refuse(file, row, excess - 1, 0);
    }
    __sync_val_compare_and_swap(&own->exceeded, exceeded, 0);
    return 0;
}

// The same of its process, which others may have made exceed it.
__attribute__((noinline)) int process_refuses_more(u32 file) {
    struct guard_file *it = file_at(file);
    u32 row = it && is_owner_known(it) ? it->process_row : 0, exceeded, excess;
    struct guard_row *of = row_at(row);
    if (!of || !row || (exceeded = of->exceeded) == 0) return 0;
    if ((excess = excess_of(row, exceeded)) != 0) return refuse(file, row, excess - 1, 0);
    __sync_val_compare_and_swap(&of->exceeded, exceeded, 0);
    return 0;
}

__attribute__((noinline)) int refuses_more(u32 file) {
    int refused;
    if (guard_mode != guard_deny) return 0;
    refused = tenant_refuses_more(file);
    return refused ? refused : process_refuses_more(file);
}
