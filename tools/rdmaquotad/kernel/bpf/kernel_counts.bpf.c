// Counts, in the kernel, what processes make and destroy on RDMA devices.
//
// Why each hook is there. A creation comes by write(2) or by ioctl(2), through many handlers; all of them
// end in the same few functions of drivers/infiniband/core/rdma_core.c:
//
//   alloc_commit_idr_uobject     an object is there to stay. The rdma cgroup charges every object of the class
//                                uverbs_idr_class and no other, and this is the class's only commit function.
//   destroy_hw_idr_uobject       the class's only way to destroy one: asked for, or because the file was closed,
//                                the process died or the device went away. A creation that failed after all comes
//                                here too, with RDMA_REMOVE_ABORT, and was not counted.
//   uverbs_free_mr, uverbs_free_dm   before an MR or a device memory is gone, and its length with it.
//   alloc_abort_idr_uobject      a creation that failed: forget what was noted about it.
//   ib_init_ucontext             a device was opened: the cgroup's hca_handle.
//   uverbs_destroy_ufile_hw      a device's context is gone, and all of its objects with it.
//   ib_umem_odp_get, ib_umem_odp_alloc_implicit, ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG
//                                the MR that is being made pins nothing.
//   ib_uverbs_open_qp            the QP that is being made is another handle of one that exists.
//   ib_uverbs_rereg_mr           an MR may have changed its length in place.
//   proc_exit_connector          a thread is gone, and its process's files and mappings with the last one; earlier
//                                places in do_exit come before the kernel has closed them.
//
// rdma_restrack_add and _del, which look fit, do not see AHs, MWs, XRCDs, WQs, flows and device memory, and are not
// reached by every destruction. rdmacg_try_charge and _uncharge see all, but not what kind an object is or whose.
//
// An object belongs to who made it. Most often that is who opened the device: then its file says whose it is when it
// is destroyed, by whomever. Objects made by somebody else (after a fork, or when the descriptor was passed on) are
// remembered one by one in `specials`.
//
// What it costs was measured, hence: one program at a creation and one at a destruction; the figures of open files in
// plain memory, since looking them up in a map took as long as all the rest; and few reads through helpers.
//
// The fentry programs are the rule. The kprobes are for kernels that cannot attach to functions of modules so, and
// the sidecar loads either these or those. A kprobe at the beginning of a destruction does not know how it ends; so
// theirs is at ib_rdmacg_uncharge, which alloc_abort_idr_uobject calls too, and an object's length is remembered.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel_counts.h"
#include "kernel_types.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// Open files, each in one of the `opener_probes` places from the one that its address tells.
struct kernel_use openers[opener_slots];

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, struct guest_key);
    __type(value, struct kernel_use);
} guests SEC(".maps");

struct special {
    u32 pid;   // who made it; 0: the opener
    u32 kind;
    u64 bytes;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 262144);
    __type(key, u64);  // address of the struct ib_uobject
    __type(value, struct special);
} specials SEC(".maps");

// What the creation that a thread is in the middle of turned out to be.
enum { mark_unpinned = 1, mark_second_handle = 2, mark_aborted = 3 };
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 16384);
    __type(key, u64);  // thread
    __type(value, u32);
} marks SEC(".maps");

// Processes whose end is of interest.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, u32);
    __type(value, u32);
} holders SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} events SEC(".maps");

u64 lost;      // changes that found no room in a map
u64 any_mark;  // not 0: there was ever a mark, so that looking for one makes sense
static const struct kernel_use nothing;

static __always_inline u32 current_pid(void) { return bpf_get_current_pid_tgid() >> 32; }

static __always_inline void lose(void) { __sync_fetch_and_add(&lost, 1); }

static void tell(u32 ended, u32 pid) {
    struct kernel_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
    if (!event) return lose();
    event->ended = ended;
    event->pid = pid;
    bpf_ringbuf_submit(event, 0);
}

static __always_inline void count(u64 *counts, u32 kind) {
    if (kind < kind_count) __sync_fetch_and_add(&counts[kind], 1);
}

// Whom a new entry is about; the pid comes last, since it makes the entry count.
static __always_inline void introduce(struct kernel_use *use, struct ib_device *device, u32 pid, u32 opener) {
    u32 one = 1;
    BPF_CORE_READ_STR_INTO(&use->device, device, name);
    use->device_index = BPF_CORE_READ(device, index);
    use->cgroup = bpf_get_current_cgroup_id();
    use->opener = opener;
    use->pid = pid;
    bpf_map_update_elem(&holders, &pid, &one, BPF_ANY);
}

// The verifier takes addresses of the kernel for pointers, and lets one calculate only with half of one, and only
// when that was moved so.
static __always_inline u32 lower_half(u64 address) {
    u32 half;
    asm volatile("%0 = %1" : "=w"(half) : "w"((u32)address));
    return half;
}

static __always_inline struct kernel_use *opener_at(u32 file, u32 probe) {
    return &openers[((file >> 6) * 0x9e3779b1U / (~0U / opener_slots + 1) + probe) % opener_slots];
}

static __always_inline struct kernel_use *opener_of(u64 file) {
    u32 half = lower_half(file);
    for (u32 probe = 0; probe < opener_probes; ++probe) {
        struct kernel_use *use = opener_at(half, probe);
        if (use->file == file) return use;
    }
    return 0;
}

// A new entry has its handle counted. Another thread may have entered the file a moment ago.
static struct kernel_use *enter_opener(u64 file, struct ib_device *device, u32 pid) {
    u32 half = lower_half(file);
    for (u32 probe = 0; probe < opener_probes; ++probe) {
        struct kernel_use *use = opener_at(half, probe);
        u64 before = __sync_val_compare_and_swap(&use->file, 0, file);
        if (before == file) return use;
        if (before != 0) continue;
        introduce(use, device, pid, pid);
        count(use->created, kind_handle);
        return use;
    }
    lose();
    return 0;
}

static __always_inline struct kernel_use *enter_guest(u64 file, u32 pid) {
    struct guest_key key = {.file = file, .pid = pid};
    struct kernel_use *use = bpf_map_lookup_elem(&guests, &key);
    if (use) return use;
    bpf_map_update_elem(&guests, &key, &nothing, BPF_NOEXIST);
    use = bpf_map_lookup_elem(&guests, &key);
    if (!use) lose();
    return use;
}

// An object, as read from its struct ib_uobject.
struct object {
    u64 address;
    u64 file;
    u64 api;  // address of the struct uverbs_api_object, which tells the kind
    void *object;
    bool ends_late;  // by kprobes: when its end is seen, `object` is no more
};

// An api outlives the file, so that its kind can be kept with that, in the place that its address tells.
static __always_inline u32 kind_of(struct kernel_use *opener, const struct object *it) {
    struct uverbs_api_object *api = (void *)it->api;
    u32 place = lower_half(it->api) / 32 % known_kinds, kind = opener->kinds[place];
    if (opener->apis[place] == it->api && kind != 0) return kind;
    kind = BPF_CORE_READ(api, id);
    if (kind >= kind_second_handle) kind = kind_driver;
    if (__sync_val_compare_and_swap(&opener->apis[place], 0, it->api) == 0) opener->kinds[place] = kind;
    return kind;
}

// The bytes that an object of this kind takes beside itself; 0 for most.
static __always_inline u64 bytes_of(u32 kind, void *object) {
    if (kind == kind_mr) return BPF_CORE_READ((struct ib_mr *)object, length);
    if (kind == kind_dm) return BPF_CORE_READ((struct ib_dm *)object, length);
    return 0;
}

static __always_inline void add_bytes(struct kernel_use *use, u32 kind, u64 bytes) {
    if (bytes) __sync_fetch_and_add(kind == kind_mr ? &use->mr_bytes : &use->dm_bytes, bytes);
}

static __always_inline u32 take_mark(void) {
    u64 thread = bpf_get_current_pid_tgid();
    u32 *mark, found;
    if (!any_mark) return 0;
    mark = bpf_map_lookup_elem(&marks, &thread);
    if (!mark) return 0;
    found = *mark;
    bpf_map_delete_elem(&marks, &thread);
    return found;
}

static __always_inline void set_mark(u32 mark) {
    u64 thread = bpf_get_current_pid_tgid();
    any_mark = 1;
    if (bpf_map_update_elem(&marks, &thread, &mark, BPF_ANY)) lose();
}

// What is made by somebody else than the opener, or is not what its kind says, is remembered by itself.
static struct kernel_use *note_special(const struct object *it, struct kernel_use *opener, struct special *special) {
    if (bpf_map_update_elem(&specials, &it->address, special, BPF_ANY))
        lose();
    else
        __sync_fetch_and_add(&opener->special, 1);
    return special->pid ? enter_guest(it->file, special->pid) : opener;
}

static __always_inline void created(const struct object *it, struct ib_device *device) {
    u32 pid = current_pid(), mark = take_mark(), kind;
    u64 bytes;
    struct kernel_use *opener = opener_of(it->file), *use;
    if (!opener) {  // opened before this program ran, or unseen
        opener = enter_opener(it->file, device, pid);
        if (!opener) return;
    }
    use = opener;
    kind = kind_of(opener, it);
    bytes = bytes_of(kind, it->object);
    if (pid != opener->pid || mark || (it->ends_late && bytes)) {
        if (mark == mark_unpinned && kind == kind_mr) bytes = 0;
        if (mark == mark_second_handle && kind == kind_qp) kind = kind_second_handle;
        struct special special = {.pid = pid == opener->pid ? 0 : pid, .kind = kind, .bytes = bytes};
        use = note_special(it, opener, &special);
        if (!use) return;
        if (use->pid == 0) introduce(use, device, pid, opener->pid ? opener->pid : pid);
    }
    count(use->created, kind);
    add_bytes(use, kind, bytes);
}

static __always_inline struct special *special_of(const struct object *it, const struct kernel_use *opener) {
    return opener->special ? bpf_map_lookup_elem(&specials, &it->address) : 0;
}

static __always_inline struct kernel_use *user_of(const struct object *it, struct kernel_use *opener,
                                                  const struct special *special) {
    struct guest_key key = {.file = it->file, .pid = special ? special->pid : 0};
    return key.pid ? bpf_map_lookup_elem(&guests, &key) : opener;
}

// The bytes of an MR or a device memory go before it does, and come back when it stays; `sign` is 1 or -1.
static __always_inline void change_bytes(const struct object *it, u64 sign) {
    struct kernel_use *opener = opener_of(it->file), *use;
    struct special *special;
    u32 kind;
    if (!opener) return;
    kind = kind_of(opener, it);
    special = special_of(it, opener);
    use = user_of(it, opener, special);
    if (use) add_bytes(use, kind, sign * (special ? special->bytes : bytes_of(kind, it->object)));
}

static __always_inline void destroyed(const struct object *it) {
    struct kernel_use *opener = opener_of(it->file), *use;
    struct special *special;
    if (!opener) return;
    special = special_of(it, opener);
    use = user_of(it, opener, special);
    if (use) count(use->destroyed, special ? special->kind : kind_of(opener, it));
    if (!special) return;
    if (use && it->ends_late) add_bytes(use, special->kind, -special->bytes);
    bpf_map_delete_elem(&specials, &it->address);
    __sync_fetch_and_add(&opener->special, -1);
}

// The pid goes first, since it makes the entry count, and the file last, since then it is another's.
static __always_inline void clear(struct kernel_use *use) {
    use->pid = 0;
    __builtin_memset((char *)use + sizeof use->file, 0, sizeof *use - sizeof use->file);
    use->file = 0;
}

// Moves the totals of a file that is closed to where they outlive it. What it still held, the kernel has destroyed.
static void retire(struct kernel_use *use) {
    struct kernel_use *past = enter_guest(use->device_index, use->pid);
    if (past) {
        for (u32 kind = 0; kind < kind_count; ++kind) {
            __sync_fetch_and_add(&past->created[kind], use->created[kind]);
            __sync_fetch_and_add(&past->destroyed[kind], use->created[kind]);
        }
        __builtin_memcpy(past->device, use->device, sizeof past->device);
        past->device_index = use->device_index;
        past->cgroup = use->cgroup;
        past->opener = use->opener;
        past->pid = use->pid;
    }
    clear(use);
}

static void closed(u64 file) {
    u32 half = lower_half(file);
    for (u32 probe = 0; probe < opener_probes; ++probe) {
        struct kernel_use *use = opener_at(half, probe);
        if (use->file == file) retire(use);
    }
}

// An entry of the same address is of a file whose end was not seen.
static void opened(u64 file, struct ib_device *device) {
    u32 pid = current_pid();
    closed(file);
    if (enter_opener(file, device, pid)) tell(0, pid);
}

static void exiting(struct task_struct *task) {
    u32 pid = BPF_CORE_READ(task, tgid);
    if (BPF_CORE_READ(task, signal, live.counter) == 0 && bpf_map_lookup_elem(&holders, &pid)) tell(1, pid);
}

// --- fentry and fexit ---------------------------------------------------------------------------

static __always_inline struct object trusted_object(struct ib_uobject *uobject) {
    struct object it = {(u64)uobject, (u64)uobject->ufile, (u64)uobject->uapi_object, uobject->object,
                        false};
    return it;
}

static __always_inline bool is_abort(enum rdma_remove_reason why) {
    return why == bpf_core_enum_value(enum rdma_remove_reason, RDMA_REMOVE_ABORT);
}

SEC("fentry/alloc_commit_idr_uobject")
int BPF_PROG(on_commit, struct ib_uobject *uobject) {
    struct object it = trusted_object(uobject);
    created(&it, uobject->context->device);
    return 0;
}

SEC("fexit/destroy_hw_idr_uobject")
int BPF_PROG(on_destroy, struct ib_uobject *uobject, enum rdma_remove_reason why, void *attributes, int status) {
    struct object it = trusted_object(uobject);
    if (is_abort(why)) return 0;
    if (status == 0)
        destroyed(&it);
    else
        change_bytes(&it, 1);
    return 0;
}

static __always_inline int freeing(struct ib_uobject *uobject, enum rdma_remove_reason why) {
    struct object it = trusted_object(uobject);
    if (!is_abort(why)) change_bytes(&it, -1);
    return 0;
}

SEC("fentry/uverbs_free_mr")
int BPF_PROG(on_free_mr, struct ib_uobject *uobject, enum rdma_remove_reason why) { return freeing(uobject, why); }

SEC("fentry/uverbs_free_dm")
int BPF_PROG(on_free_dm, struct ib_uobject *uobject, enum rdma_remove_reason why) { return freeing(uobject, why); }

SEC("fentry/alloc_abort_idr_uobject")
int BPF_PROG(on_abort) {
    take_mark();
    return 0;
}

SEC("fexit/ib_init_ucontext")
int BPF_PROG(on_open, struct uverbs_attr_bundle *attributes, int status) {
    if (status == 0) opened((u64)attributes->ufile, attributes->context->device);
    return 0;
}

SEC("fexit/uverbs_destroy_ufile_hw")
int BPF_PROG(on_close, struct ib_uverbs_file *file) {
    if (!file->ucontext) closed((u64)file);
    return 0;
}

SEC("fentry/ib_umem_odp_get")
int BPF_PROG(on_demand) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("fentry/ib_umem_odp_alloc_implicit")
int BPF_PROG(on_demand_implicit) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("fentry/ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG")
int BPF_PROG(on_device_memory) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("fentry/ib_uverbs_open_qp")
int BPF_PROG(on_open_qp) {
    set_mark(mark_second_handle);
    return 0;
}

SEC("fentry/ib_uverbs_rereg_mr")
int BPF_PROG(on_rereg_mr, struct uverbs_attr_bundle *attributes) {
    struct kernel_use *use = opener_of((u64)attributes->ufile);
    if (use) use->reregistered = 1;
    return 0;
}

SEC("fentry/proc_exit_connector")
int BPF_PROG(on_exit, struct task_struct *task) {
    exiting(task);
    return 0;
}

// --- kprobes: in place of the above -------------------------------------------------------------

static __always_inline struct object read_object(struct ib_uobject *uobject) {
    struct object it = {(u64)uobject, (u64)BPF_CORE_READ(uobject, ufile), (u64)BPF_CORE_READ(uobject, uapi_object),
                        BPF_CORE_READ(uobject, object), true};
    return it;
}

SEC("kprobe/alloc_commit_idr_uobject")
int BPF_KPROBE(probe_commit, struct ib_uobject *uobject) {
    struct object it = read_object(uobject);
    created(&it, BPF_CORE_READ(uobject, context, device));
    return 0;
}

SEC("kprobe/alloc_abort_idr_uobject")
int BPF_KPROBE(probe_abort) {
    set_mark(mark_aborted);
    return 0;
}

static __always_inline void uncharged(struct ib_rdmacg_object *charge) {
    struct object it = read_object((void *)charge - bpf_core_field_offset(struct ib_uobject, cg_obj));
    if (take_mark() != mark_aborted) destroyed(&it);
}

SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(probe_uncharge, struct ib_rdmacg_object *charge, void *device, enum rdmacg_resource_type resource) {
    struct ib_ucontext *context = (void *)charge - bpf_core_field_offset(struct ib_ucontext, cg_obj);
    if (resource == bpf_core_enum_value(enum rdmacg_resource_type, RDMACG_RESOURCE_HCA_HANDLE))
        closed((u64)BPF_CORE_READ(context, ufile));
    else
        uncharged(charge);
    return 0;
}

SEC("kprobe/proc_exit_connector")
int BPF_KPROBE(probe_exit, struct task_struct *task) {
    exiting(task);
    return 0;
}
