// Counts, in the kernel, what processes make and destroy on RDMA devices. This file has the hooks; objects.bpf.h what
// happens when an object begins or ends, uses.bpf.h whom it is counted for.
//
// Why each hook is there. A creation comes by write(2) or by ioctl(2), through many handlers. All of them end in a few
// functions of drivers/infiniband/core/rdma_core.c:
//
//   alloc_commit_idr_uobject     an object begins. The rdma cgroup charges every object of the class uverbs_idr_class
//                                and no other, and this is the class's only commit function. It runs before any
//                                thread can find the object.
//   ib_rdmacg_uncharge           an object, or a device's context with all of its objects, ended: it was destroyed, its file was
//                                closed, its process died or the device went away. This is the class's only way out.
//   alloc_abort_idr_uobject      a creation failed: forget what was noted about it.
//   ib_init_ucontext             a device was opened: the cgroup's hca_handle.
//   uverbs_destroy_ufile_hw      a device's file is about to be closed.
//   ib_umem_odp_get, ib_umem_odp_alloc_implicit, ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG
//                                the MR being created pins nothing.
//   ib_uverbs_rereg_mr           an MR may have changed its length in place.
//   ib_uverbs_ioctl, ib_uverbs_write
//                                the guard's: their end gives back what the request did not use, and finds what was skipped.
//   security_file_ioctl          the guard's: a request is refused before it begins. One by write(2) is judged when its object
//                                begins, since a hook there would be called at each read and write of the node.
//   proc_exit_connector          a thread is gone, and with a process's last thread its files and mappings. Earlier
//                                places in do_exit run before the kernel has closed them.
//
// rdma_restrack_add and _del look fit, but do not see AHs, MWs, XRCDs, WQs, flows and device memory, and miss some
// destructions. rdmacg_try_charge and _uncharge see everything, but neither an object's kind nor its owner.
//
// An object counts for the process that made it: mostly the one that opened the device, else a guest (after a fork, or
// when the descriptor was passed on). It does not matter who destroys it.
//
// Measurement shaped this: one program at a creation and one at a destruction, tables in plain memory instead of maps,
// and few reads through helpers.
//
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tools/common/guard/kernel_counts.h"
#include "kernel_types.h"
#include "objects.bpf.h"
#include "guard_look.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A file is opened once. An entry that was there already is one that a faster thread's first object has made, or, when
// it was whole before, one of a file at the same address whose end was missed; not if another thread's request has found out just
// now that the file is open.
static __always_inline void opened(u64 file) {
    u32 pid = current_pid();
    bool begins = false;
    struct kernel_use *use = opener_of(file);
    if (use && use->whole == whole_seen) {
        closed(file);
        use = 0;
    }
    if (!use) use = enter_opener(file, pid, bpf_get_current_cgroup_id(), &begins);
    if (!use) return judge_uncounted();
    use->whole = whole_seen;
    if (begins && guarded) stamp_current(use->id);
    if (begins) now_begun(use, false);
    else if (!has_begun(use)) return lose();  // another thread counts it, which has found it open
    bool counted = __sync_val_compare_and_swap(&use->created[kind_handle], 0, 1) != 0;
    if (guarded) opened_guarded(use, counted);
    tell(0, pid);
}

static __always_inline void exiting(struct task_struct *task) {
    u32 pid = BPF_CORE_READ(task, tgid);
    drop_mark();
    if (guarded) settle_reservation(current_thread());
    if (BPF_CORE_READ(task, signal, live.counter) == 0 && bpf_map_lookup_elem(&holders, &pid)) tell(1, pid);
}

static __always_inline void reregisters(u64 file) {
    struct kernel_use *use = opener_of(file);
    if (use) use->reregistered = 1;
    if (guarded) set_mark(mark_rereg);
}

// --- the counts ---------------------------------------------------------------------------------
//
// By kprobes, or fprobes where the kernel has them: they run with preemption off, while a program for fentry or fexit is skipped
// on a CPU where another thread was preempted in the same one. What one for fexit that was skipped had to do is done later: give_up()
// (reservations.bpf.h), look() (guard_look.bpf.h). A kprobe at the beginning of a destruction does not know whether it
// succeeds, so the one for an end is at ib_rdmacg_uncharge, which comes after it.

enum { most_read = 128 };
#define FIELD(memory, type, field) (*(u64 *)((memory) + bpf_core_field_offset(type, field)))

// By one read, which costs less than three.
static __always_inline struct object read_object(struct ib_uobject *uobject) {
    const u64 size = bpf_core_field_offset(struct ib_uobject, uapi_object) + sizeof(u64);
    char memory[most_read] __attribute__((aligned(8)));
    struct object it = {(u64)uobject};
    if (size > sizeof memory || bpf_probe_read_kernel(memory, size, uobject) != 0) return it;
    it.file = FIELD(memory, struct ib_uobject, ufile);
    it.api = FIELD(memory, struct ib_uobject, uapi_object);
    it.object = (void *)FIELD(memory, struct ib_uobject, object);
    return it;
}

SEC("kprobe/alloc_commit_idr_uobject")
int BPF_KPROBE(on_commit, struct ib_uobject *uobject) {
    struct object it = read_object(uobject);
    created(&it);
    return 0;
}

// One that could not be opened was never counted. One that was opened unseen is counted now, at the latest: soon the file's
// address may be another's.
static __always_inline void context_ends(u64 file, bool ended) {
    struct kernel_use *use = opener_of(file);
    if (!has_context(file)) return;
    if (ended && opening_count) end_opening(file, true);  // else on_close has ended it
    if (!use) return;
    if (guarded) opened_unseen(use->id);
    if (ended) retire(use, use->id);
}

SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(on_uncharge, struct ib_rdmacg_object *charge, void *device, enum rdmacg_resource_type resource) {
    struct ib_ucontext *context = (void *)charge - bpf_core_field_offset(struct ib_ucontext, cg_obj);
    if (resource == bpf_core_enum_value(enum rdmacg_resource_type, RDMACG_RESOURCE_HCA_HANDLE))
        context_ends((u64)BPF_CORE_READ(context, ufile), true);
    else
        ended((u64)charge - bpf_core_field_offset(struct ib_uobject, cg_obj));
    return 0;
}

SEC("kprobe/uverbs_destroy_ufile_hw")
int BPF_KPROBE(on_close, struct ib_uverbs_file *file) {
    if (opening_count) end_opening((u64)file, true);
    context_ends((u64)file, false);
    return 0;
}

SEC("kprobe/alloc_abort_idr_uobject")
int BPF_KPROBE(on_abort) {
    drop_mark();
    return 0;
}

SEC("kprobe/ib_umem_odp_get")
int BPF_KPROBE(on_demand) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_umem_odp_alloc_implicit")
int BPF_KPROBE(on_demand_implicit) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG")
int BPF_KPROBE(on_device_memory) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_uverbs_rereg_mr")
int BPF_KPROBE(on_rereg_mr, struct uverbs_attr_bundle *attributes) {
    reregisters((u64)BPF_CORE_READ(attributes, ufile));
    return 0;
}

SEC("kprobe/proc_exit_connector")
int BPF_KPROBE(on_exit, struct task_struct *task) {
    exiting(task);
    return 0;
}

SEC("fexit/ib_init_ucontext")
int BPF_PROG(on_open, struct uverbs_attr_bundle *attributes, int status) {
    if (status == 0) opened((u64)attributes->ufile);
    return 0;
}

// --- the guard ----------------------------------------------------------------------------------

// Also where it failed: it may have failed to answer only.
SEC("fexit/ib_uverbs_rereg_mr")
int BPF_PROG(on_rereg_end, struct uverbs_attr_bundle *attributes) {
    drop_mark();
    struct kernel_use *use = opener_of((u64)attributes->ufile);
    if (use) recount_memory(use->id);
    return 0;
}

SEC("fexit/ib_uverbs_ioctl")
int BPF_PROG(on_ioctl_end, struct file *file, unsigned int command, unsigned long argument, long status) {
    if (status == 0) settle_reservation(current_thread());
    else give_up_reservation(current_thread());
    return 0;
}

// Where the kernel skipped a program: nothing was reserved for what a write has made, which would find out.
SEC("fexit/ib_uverbs_write")
int BPF_PROG(on_write_end, struct file *file) {
    struct kernel_use *use = opener_of((u64)file->private_data);
    if (use && guard_mode != guard_off && count_unseen(use->id, true)) judge((u32)use->id);
    return 0;
}

// The look at each ioctl. No program here may sleep: a user who controls the page that it waits for could stop BPF on the whole node.
// The kernel never skips a program on BPF's own security hook, but calls that hook only if BPF is among its security modules.
// Otherwise an fmod_ret program changes what security_file_ioctl() returns; the kernel skips it on a CPU where another thread
// was preempted in the same program. Most kernels have a separate function for 32-bit programs.
SEC("lsm/file_ioctl")
int BPF_PROG(on_ioctl, struct file *file, unsigned int command, unsigned long argument) {
    return command == RDMA_VERBS_IOCTL ? look(file, argument) : 0;
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(on_ioctl_compat, struct file *file, unsigned int command, unsigned long argument) {
    return command == RDMA_VERBS_IOCTL ? look(file, argument) : 0;
}

SEC("fmod_ret/security_file_ioctl")
int BPF_PROG(on_ioctl_modified, struct file *file, unsigned int command, unsigned long argument, int refused) {
    return refused || command != RDMA_VERBS_IOCTL ? refused : look(file, argument);
}

SEC("fmod_ret/security_file_ioctl_compat")
int BPF_PROG(on_ioctl_compat_modified, struct file *file, unsigned int command, unsigned long argument, int refused) {
    return refused || command != RDMA_VERBS_IOCTL ? refused : look(file, argument);
}

SEC("iter/task_file")
int take_stock(struct bpf_iter__task_file *at) {
    struct task_struct *task = at->task;
    struct file *file = at->file;
    if (lists_all && at->meta->seq_num == 0) drop_objects(0);
    if (task && file) list_file(task, file);
    if (lists_all && !task) {
        drop_threads();
        drop_files();
    }
    return 0;
}

SEC("syscall")
int settle(struct settle_request *request) {
    settle_file(request);
    return 0;
}
