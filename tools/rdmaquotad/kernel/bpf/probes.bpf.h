// kprobes in place of fentry programs. The kernel skips an fentry or fexit program on a CPU where another thread was
// preempted in the same one; a kprobe runs with preemption off. It costs more. The sidecar loads
//
//   - where threads are never preempted in the kernel: none of these;
//   - where they are: these in place of the fentry programs and of on_destroy and on_close. The other fexit programs stay.
//     What one that was skipped had to do is done later: give_up() (reservations.bpf.h), look() (guard_look.bpf.h). Since
//     Linux 6.17 the probe for commits reads as directly as an fentry program;
//   - on kernels that cannot attach fentry to functions of modules: those that need no fexit, and no guard.
//
// A kprobe at the beginning of a destruction does not know whether it succeeds, so the kprobe for an end is at
// ib_rdmacg_uncharge, which comes after it.
#pragma once

static __always_inline struct object read_object(struct ib_uobject *uobject) {
    struct object it = {(u64)uobject, (u64)BPF_CORE_READ(uobject, ufile), (u64)BPF_CORE_READ(uobject, uapi_object),
                        BPF_CORE_READ(uobject, object)};
    return it;
}

SEC("kprobe/alloc_commit_idr_uobject")
int BPF_KPROBE(probe_commit, struct ib_uobject *uobject) {
    struct object it = read_object(uobject);
    created(&it, false);
    return 0;
}

SEC("kprobe/alloc_commit_idr_uobject")
int BPF_KPROBE(probe_commit_directly, struct ib_uobject *uobject) {
    struct object it = trusted_object(bpf_rdonly_cast(uobject, 0));
    it.address = (u64)uobject;
    created(&it, true);
    return 0;
}

// One that could not be opened was never counted. One that was opened unseen is counted now, at the latest: soon the file's
// address may be another's.
static __always_inline void context_ends(u64 file, bool ended) {
    struct kernel_use *use = opener_of(file);
    if (!has_context(file)) return;
    if (ended && opening_count) end_opening(file, true);  // else probe_close has ended it
    if (!use) return;
    if (guarded) opened_unseen(use->id);
    if (ended) retire(use, use->id);
}

SEC("kprobe/ib_rdmacg_uncharge")
int BPF_KPROBE(probe_uncharge, struct ib_rdmacg_object *charge, void *device, enum rdmacg_resource_type resource) {
    struct ib_ucontext *context = (void *)charge - bpf_core_field_offset(struct ib_ucontext, cg_obj);
    if (resource == bpf_core_enum_value(enum rdmacg_resource_type, RDMACG_RESOURCE_HCA_HANDLE))
        context_ends((u64)BPF_CORE_READ(context, ufile), true);
    else
        ended((u64)charge - bpf_core_field_offset(struct ib_uobject, cg_obj));
    return 0;
}

SEC("kprobe/uverbs_destroy_ufile_hw")
int BPF_KPROBE(probe_close, struct ib_uverbs_file *file) {
    if (opening_count) end_opening((u64)file, true);
    context_ends((u64)file, false);
    return 0;
}

SEC("kprobe/alloc_abort_idr_uobject")
int BPF_KPROBE(probe_abort) {
    drop_mark();
    return 0;
}

SEC("kprobe/ib_umem_odp_get")
int BPF_KPROBE(probe_demand) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_umem_odp_alloc_implicit")
int BPF_KPROBE(probe_demand_implicit) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_uverbs_handler_UVERBS_METHOD_DM_MR_REG")
int BPF_KPROBE(probe_device_memory) {
    set_mark(mark_unpinned);
    return 0;
}

SEC("kprobe/ib_uverbs_rereg_mr")
int BPF_KPROBE(probe_rereg_mr, struct uverbs_attr_bundle *attributes) {
    reregisters((u64)BPF_CORE_READ(attributes, ufile));
    return 0;
}

SEC("kprobe/ib_init_ucontext")
int BPF_KPROBE(probe_opening, struct uverbs_attr_bundle *attributes) {
    set_opening((u64)attributes);
    return 0;
}

SEC("kretprobe/ib_init_ucontext")
int BPF_KRETPROBE(probe_opened, int status) {
    struct uverbs_attr_bundle *attributes = take_opening();
    if (attributes && status == 0)
        opened((u64)BPF_CORE_READ(attributes, ufile), BPF_CORE_READ(attributes, context, device));
    return 0;
}

SEC("kprobe/proc_exit_connector")
int BPF_KPROBE(probe_exit, struct task_struct *task) {
    exiting(task);
    return 0;
}
