// Each object that was counted is remembered until it ends, with what it added: only that is subtracted. So no count
// can fall below zero, whatever existed or was being created or destroyed when the program was attached, and whatever
// call a hook may miss. An object that finds no room here is not counted, and is lost.
#pragma once

#include "marks.bpf.h"
#include "reservations.bpf.h"
#include "unpinned.bpf.h"
#include "uses.bpf.h"

// Each object is in one of the `object_probes` slots from the one that its address hashes to, else in `overflow`.
// Plain memory, for the same reason as `openers`.
struct object_slot objects[object_slots];

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, overflow_entries);
    __type(key, u64);  // address of the struct ib_uobject
    __type(value, struct counted_object);
} overflow SEC(".maps");

enum { slot_ends = 1 };  // in place of an address: its end is being counted

static __always_inline void subtract(const struct counted_object *counted) {
    if (guarded && counted->kind != kind_driver) uncharge(counted->opener, counted->kind, counted->bytes);
    struct kernel_use *use = user_of(counted);
    if (!use) return;
    count(use->destroyed, counted->kind);
    add_bytes(use, counted->kind, -counted->bytes);
}

static __always_inline struct object_slot *slot_at(u32 object, u32 probe) {
    return &objects[slot_of(object, 5, object_slots, probe)];
}

enum { remembered, met, not_remembered };

// Until the opener is there, which comes last, the slot says nothing.
static __always_inline void fill_slot(struct object_slot *slot, const struct counted_object *counted) {
    slot->counted.bytes = counted->bytes;
    slot->counted.pid = counted->pid;
    slot->counted.kind = counted->kind;
    slot->counted.unpinned = counted->unpinned;
    asm volatile("" ::: "memory");
    *(volatile u64 *)&slot->counted.opener = counted->opener;
}

static __always_inline void end_elsewhere(u64 object) {
    struct counted_object counted, *found = overflowing ? bpf_map_lookup_elem(&overflow, &object) : 0;
    if (!found) return;
    counted = *found;
    if (bpf_map_delete_elem(&overflow, &object) != 0) return;
    __sync_fetch_and_add(&overflowing, -1);
    subtract(&counted);
}

static __always_inline int remember_elsewhere(u64 object, const struct counted_object *counted) {
    end_elsewhere(object);  // one whose end was missed
    if (__sync_fetch_and_add(&overflowing, 1) >= most_overflowing) unusual.crowded = 1;
    if (bpf_map_update_elem(&overflow, &object, counted, BPF_NOEXIST) == 0) return remembered;
    __sync_fetch_and_add(&overflowing, -1);
    lose();
    return not_remembered;
}

// `not_remembered`, and lost, when there is no room. A slot that has the same address is of an object whose end was missed; or
// `met`: another thread is just remembering the same one.
static __always_inline int remember(u64 object, const struct counted_object *counted) {
    u32 half = lower_half(object);
    for (u32 probe = 0; probe < object_probes; ++probe) {
        struct object_slot *slot = slot_at(half, probe);
        u64 before = slot->object;
        if (before == 0) before = __sync_val_compare_and_swap(&slot->object, 0, object);
        if (before == object && slot->counted.opener == 0) return met;
        if (before == object)
            subtract(&slot->counted);
        else if (before != 0)
            continue;
        fill_slot(slot, counted);
        return remembered;
    }
    return remember_elsewhere(object, counted);
}

// True for one thread, which ends it.
static __always_inline bool begin_end(struct object_slot *slot, u64 object) {
    return __sync_val_compare_and_swap(&slot->object, object, slot_ends) == object;
}

static __always_inline void end_slot(struct object_slot *slot) {
    struct counted_object counted = slot->counted;
    if (counted.bytes) counted.bytes = __sync_lock_test_and_set(&slot->counted.bytes, 0);  // see recount_slot
    *(volatile u64 *)&slot->counted.opener = 0;
    slot->object = 0;
    subtract(&counted);
}

// An object has ended. Whoever removes it from here subtracts it; one that was never counted is not here.
static __always_inline void ended(u64 object) {
    u32 half = lower_half(object);
    for (u32 probe = 0; probe < object_probes; ++probe) {
        struct object_slot *slot = slot_at(half, probe);
        if (slot->object != object) continue;
        if (begin_end(slot, object)) end_slot(slot);
        return;
    }
    end_elsewhere(object);
}

// An object as read from its struct ib_uobject.
struct object {
    u64 address;
    u64 file;
    u64 api;  // address of the struct uverbs_api_object, which tells the kind
    void *object;
};

// An api outlives the file, so that its kind can be kept with the file: at the place that its address hashes to, or the next.
enum { kind_probes = 2 };

static __always_inline u32 kind_place(const struct object *it, u32 probe) {
    return modulo(lower_half(it->api) / 32 + probe, known_kinds);
}

static __always_inline u32 read_kind(struct kernel_use *opener, const struct object *it) {
    struct uverbs_api_object *api = (void *)it->api;
    u32 kind = BPF_CORE_READ(api, id);
    if (kind > kind_driver) kind = kind_driver;
    for (u32 probe = 0; probe < kind_probes; ++probe) {
        u32 place = kind_place(it, probe);
        u64 before = __sync_val_compare_and_swap(&opener->apis[place], 0, it->api);
        if (before == 0) opener->kinds[place] = kind;
        if (before == 0 || before == it->api) break;
    }
    return kind;
}

static __always_inline u32 kind_of(struct kernel_use *opener, const struct object *it) {
    for (u32 probe = 0; probe < kind_probes; ++probe) {
        u32 place = kind_place(it, probe), kind = opener->kinds[place];
        if (opener->apis[place] == it->api && kind != 0) return kind;
    }
    return read_kind(opener, it);
}

// The bytes that an object of this kind takes; 0 for most kinds.
static __always_inline u64 bytes_of(u32 kind, void *object) {
    if (kind == kind_mr) return BPF_CORE_READ((struct ib_mr *)object, length);
    if (kind == kind_dm) return BPF_CORE_READ((struct ib_dm *)object, length);
    return 0;
}

// The entry that an object is counted in, by now that of its maker.
static __always_inline struct kernel_use *maker(struct kernel_use *opener, u32 pid, const struct object *it) {
    struct kernel_use *use = opener;
    if (pid == opener->pid) return opener;
    use = enter_guest(opener->id, pid);
    if (use && use->pid == 0) introduce(use, uverbs_of(it->file), pid, opener->pid ? opener->pid : pid, bpf_get_current_cgroup_id());
    return use;
}

// The bytes that an object counts; most kinds have none.
static __always_inline void count_bytes(struct counted_object *counted, void *object, u32 mark) {
    if (counted->kind != kind_mr && counted->kind != kind_dm) return;
    counted->unpinned = mark & mark_unpinned && counted->kind == kind_mr;
    if (!counted->unpinned) counted->bytes = bytes_of(counted->kind, object);
    if (guarded && counted->kind == kind_mr && !counted->unpinned && !is_reserved(counted->opener, kind_mr, counted->bytes))
        counted->unpinned = pins_nothing(object);  // the kernel may have skipped the program that marks it
    if (counted->unpinned) counted->bytes = 0;
    if (guarded && counted->kind == kind_mr && !counted->unpinned && !counted->bytes)  // some drivers set none for dma-buf (irdma)
        counted->bytes = reserved_bytes(counted->opener, kind_mr);
}

// One that was opened before this program ran.
static __always_inline struct kernel_use *enter_old(u64 file, u32 pid) {
    bool begins = false;
    struct kernel_use *opener = enter_opener(file, pid, bpf_get_current_cgroup_id(), &begins);
    if (!opener || !begins) return opener;
    if (guarded) stamp_current(opener->id);
    now_begun(opener, true);
    return opener;
}

// One too many by a rate, which nobody looked at before, is judged as one beyond a limit is.
static __always_inline void made_guarded(const struct counted_object *counted, u32 mark) {
    u64 thread = current_thread();
    bool looked = find_reservation(thread) != 0;
    made(counted->opener, counted->kind, counted->bytes, thread, mark);
    if (has_paces() && count_pace((u32)counted->opener, counted->kind == kind_mr ? counted->bytes : 0) && !looked)
        judge((u32)counted->opener);
}

// The guard counts before all else, so that it counts also what finds no room elsewhere: until its file is closed, since it is
// not known when it ends.
static __always_inline void created(const struct object *it) {
    u64 ids = bpf_get_current_pid_tgid();
    u32 pid = ids >> 32, mark = take_mark(ids);
    struct kernel_use *opener = opener_of(it->file), *use;
    struct counted_object counted = {};
    if (!opener) opener = enter_old(it->file, pid);
    if (!opener) return judge_uncounted();
    if (!has_begun(opener)) return lose();
    counted.opener = opener->id;
    counted.pid = pid == opener->pid ? 0 : pid;
    counted.kind = kind_of(opener, it);
    count_bytes(&counted, it->object, mark);
    if (guarded && counted.kind != kind_driver) made_guarded(&counted, mark);
    use = maker(opener, pid, it);
    int kept = remember(it->address, &counted);
    if (kept == met && guarded && counted.kind != kind_driver) uncharge(counted.opener, counted.kind, counted.bytes);
    if (kept != remembered || !use) return;
    count(use->created, counted.kind);
    add_bytes(use, counted.kind, counted.bytes);
}
