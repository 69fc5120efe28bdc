// The look at a request, before the kernel does what it asks for: which kind of object it makes, and how many bytes. A
// program may change the request after the look; so the commit decides, and the look only spares honest programs a
// signal.
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "guard_rereg.bpf.h"

enum { no_kind = ~0U, by_write = ~1U, another_length = kind_count };  // by_write: the command in the request tells
enum { looked_attributes = 12, usual_attributes = 5 };
enum { rereg_translation = 1 };  // IB_MR_REREG_TRANS (include/rdma/ib_verbs.h); the same as IBV_REREG_MR_CHANGE_TRANSLATION

struct request {
    u32 kind;
    u32 length_attribute;  // has the bytes; 0: none has
};

#define METHOD(object, method) ((u32)(object) << 16 | (method))

static __always_inline struct request request_of(u32 object, u32 method) {
    struct request it = {no_kind, 0};
    switch (METHOD(object, method)) {
        case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE): it.kind = by_write; break;
        case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT): it.kind = kind_handle; break;
        case METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE): it.kind = kind_cq; break;
        case METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE): it.kind = kind_qp; break;
        case METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE): it.kind = kind_srq; break;
        case METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE): it.kind = kind_wq; break;
        case METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW): it.kind = kind_flow; break;
        case METHOD(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_CREATE): it.kind = UVERBS_OBJECT_FLOW_ACTION; break;
        case METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE): it.kind = kind_counters; break;
        case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG): it.kind = kind_mr; break;
        case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR):
            it.kind = kind_mr;
            it.length_attribute = UVERBS_ATTR_REG_DMABUF_MR_LENGTH;
            break;
        case METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC):
            it.kind = kind_dm;
            it.length_attribute = UVERBS_ATTR_ALLOC_DM_LENGTH;
            break;
    }
    return it;
}

static __always_inline u32 kind_of_command(u32 command) {
    switch (command & IB_USER_VERBS_CMD_COMMAND_MASK) {
        case IB_USER_VERBS_CMD_GET_CONTEXT: return kind_handle;
        case IB_USER_VERBS_CMD_ALLOC_PD: return kind_pd;
        case IB_USER_VERBS_CMD_CREATE_AH: return kind_ah;
        case IB_USER_VERBS_CMD_REG_MR: return kind_mr;
        case IB_USER_VERBS_CMD_REREG_MR: return another_length;
        case IB_USER_VERBS_CMD_ALLOC_MW: return kind_mw;
        case IB_USER_VERBS_CMD_CREATE_CQ: return kind_cq;
        case IB_USER_VERBS_CMD_CREATE_QP: return kind_qp;
        case IB_USER_VERBS_CMD_CREATE_SRQ: return kind_srq;
        case IB_USER_VERBS_CMD_CREATE_XSRQ: return kind_srq;
        case IB_USER_VERBS_CMD_OPEN_XRCD: return kind_xrcd;
        case IB_USER_VERBS_CMD_OPEN_QP: return kind_second_handle;
        case IB_USER_VERBS_EX_CMD_CREATE_FLOW: return kind_flow;
        case IB_USER_VERBS_EX_CMD_CREATE_WQ: return kind_wq;
        case IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL: return kind_rwq_ind;
    }
    return no_kind;
}

static __always_inline long read_user(void *into, u32 size, u64 from, bool sleeps) {
    return sleeps ? bpf_copy_from_user(into, size, (void *)from) : bpf_probe_read_user(into, size, (void *)from);
}

// A request as far as the look needs it. `kind` is no_kind where it makes nothing, or cannot be read.
struct made_by {
    u32 kind;
    u32 zero;
    u64 bytes;
};

// A length that no device accepts must not make a sum wrap; and both fit into one word.
enum { bytes_bits = 56, largest_bits = 52 };

struct asked {
    u64 header[sizeof(struct ib_uverbs_ioctl_hdr) / sizeof(u64)];
    struct ib_uverbs_attr attributes[looked_attributes];
};
static __always_inline struct ib_uverbs_ioctl_hdr *header_of(struct asked *it) { return (void *)it->header; }

// The header with as many attributes as most requests have, in one step; the header alone where memory ends behind it.
static __always_inline u32 read_header(struct asked *it, u64 from, bool sleeps) {
    u32 both = sizeof it->header + usual_attributes * sizeof it->attributes[0];
    if (read_user(it, both, from, sleeps) == 0) return usual_attributes;
    if (read_user(it->header, sizeof it->header, from, sleeps) != 0) header_of(it)->object_id = header_of(it)->method_id = ~0;
    return 0;
}

// How many attributes are there to look at, when `have` are read.
static __always_inline u32 read_attributes(struct asked *it, u64 from, u32 have, bool sleeps) {
    u32 count = header_of(it)->num_attrs;
    if (count > looked_attributes) count = looked_attributes;
    if (count <= have) return count;
    return read_user(it->attributes, count * sizeof it->attributes[0], from + sizeof it->header, sleeps) == 0 ? count : 0;
}

// Of a registration: what is mapped on demand pins nothing.
static __always_inline void look_at_memory(struct made_by *it, u64 input, bool sleeps) {
    struct ib_uverbs_reg_mr memory;
    if (read_user(&memory, sizeof memory, input, sleeps) != 0) it->kind = no_kind;
    else if (!(memory.access_flags & IB_UVERBS_ACCESS_ON_DEMAND)) it->bytes = memory.length;
}

// Of a re-registration, which may need room for both lengths for a moment.
static __always_inline void look_at_length_change(struct made_by *it, u64 input, bool sleeps) {
    struct ib_uverbs_rereg_mr memory;
    if (read_user(&memory, sizeof memory, input, sleeps) != 0 || !(memory.flags & rereg_translation)) it->kind = no_kind;
    else it->bytes = memory.length;
}

// Of a write command: attributes in any order, of which one is the command and another its input.
static __always_inline void look_at_command(struct made_by *it, const struct ib_uverbs_attr *attributes, u32 count, bool sleeps) {
    u64 input = 0;
    u32 command = ~0U;
    for (u32 i = 0; i < looked_attributes; ++i) {
        if (i >= count) break;
        if (attributes[i].attr_id == UVERBS_ATTR_WRITE_CMD) command = attributes[i].data;
        if (attributes[i].attr_id == UVERBS_ATTR_CORE_IN) input = attributes[i].data;
    }
    it->kind = kind_of_command(command);
    if (it->kind == kind_mr) look_at_memory(it, input, sleeps);
    if (it->kind == another_length) look_at_length_change(it, input, sleeps);
}

static __always_inline void look_at_length(struct made_by *it, const struct ib_uverbs_attr *attributes, u32 count, u32 wanted) {
    for (u32 i = 0; i < looked_attributes; ++i) {
        if (i >= count) break;
        if (attributes[i].attr_id == wanted) it->bytes = attributes[i].data;
    }
}

static __always_inline struct made_by read_request(u64 argument, bool sleeps) {
    struct asked asked;
    struct made_by it = {no_kind, 0, 0};
    u32 count = read_header(&asked, argument, sleeps);
    struct request what = request_of(header_of(&asked)->object_id, header_of(&asked)->method_id);
    if (what.kind != by_write) it.kind = what.kind;
    if (what.kind != by_write && !what.length_attribute) return it;
    count = read_attributes(&asked, argument, count, sleeps);
    if (what.kind == by_write) look_at_command(&it, asked.attributes, count, sleeps);
    else look_at_length(&it, asked.attributes, count, what.length_attribute);
    return it;
}

// In functions of their own, which give their stack back before the charge.
static __always_inline u64 packed(struct made_by it) {
    if (it.kind == no_kind || it.bytes >> largest_bits) return ~0ULL;
    return (u64)it.kind << bytes_bits | it.bytes;
}
__attribute__((noinline)) u64 read_asleep(u64 argument) { return packed(read_request(argument, true)); }
__attribute__((noinline)) u64 read_awake(u64 argument) { return packed(read_request(argument, false)); }

static __always_inline bool is_uverbs(struct file *file) {
    char name[12] = {};
    struct module *owner = BPF_CORE_READ(file, f_op, owner);
    if (!owner || bpf_probe_read_kernel(name, sizeof name - 1, owner->name) != 0) return false;
    return bpf_strncmp(name, 10, "ib_uverbs") == 0;
}

// The entry of a device that is about to be opened.
static __always_inline struct kernel_use *entering(u64 ufile, struct file *file) {
    struct ib_device *device;
    struct kernel_use *use;
    if (!is_uverbs(file)) return 0;
    device = BPF_CORE_READ((struct ib_uverbs_file *)ufile, device, ib_dev);
    use = device ? enter_opener(ufile, device, current_pid(), bpf_get_current_cgroup_id(), 0) : 0;
    if (use) stamp_current(use->id);
    return use;
}

// What a security hook may return, as constants, since the verifier does not follow a negation. The policy knows no other.
static __always_inline int refusal(int error) {
    if (error == 0) return 0;
    if (error == 11) return -11;  // EAGAIN
    if (error == 12) return -12;  // ENOMEM
    return -122;                  // EDQUOT
}

static __always_inline int look(u64 ufile, struct file *file, u32 command, u64 argument, bool sleeps) {
    struct kernel_use *use;
    struct guard_file *it;
    u64 request;
    u32 kind;
    if (command != RDMA_VERBS_IOCTL || guard_mode == guard_off) return 0;
    use = opener_of(ufile);
    it = use ? file_at((u32)use->id) : 0;
    if (it && it->poisoned) return refusal(it->stamp.deny_errno);  // whatever it seems to ask for
    request = sleeps ? read_asleep(argument) : read_awake(argument);
    if (request == ~0ULL) return 0;
    kind = request >> bytes_bits;
    if (!use && kind == kind_handle) use = entering(ufile, file);
    if (!use || (kind == kind_handle && use->whole)) return 0;
    if (it && it->waits && !it->stamped) return refusal(it->stamp.deny_errno);
    if (kind == another_length) return refusal(refuses_bytes(use->id, request & ((1ULL << bytes_bits) - 1)));
    return refusal(reserve(use->id, kind, request & ((1ULL << bytes_bits) - 1)));
}

// A context of a device is open.
static __always_inline void opened_guarded(struct kernel_use *use) {
    stamp_current(use->id);
    made(use->id, kind_handle, 0);
}
