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
#include "guard_stock.bpf.h"

enum { no_kind = ~0U, by_write = ~1U };  // by_write: the command in the request tells
// With its first two attributes a request is shorter than 64 bytes, which the kernel copies in words, not byte by byte.
enum { looked_attributes = 12, first_attributes = 2 };
// IB_MR_REREG_TRANS and IB_MR_REREG_ACCESS (include/rdma/ib_verbs.h); the same as IBV_REREG_MR_CHANGE_TRANSLATION and _ACCESS
enum { rereg_translation = 1, rereg_access = 4 };

// Of newer kernels than the headers (ib_user_ioctl_cmds.h, mlx5_user_ioctl_cmds.h).
enum { object_dmah = UVERBS_OBJECT_ASYNC_EVENT + 1, method_dmah_alloc = 0 };
enum { method_reg_mr = UVERBS_METHOD_REG_DMABUF_MR + 1, reg_mr_length = 5, reg_mr_access = 6 };

struct request {
    u32 kind;
    u32 length_attribute;  // has the bytes; 0: none has
    u32 access_attribute;  // tells whether they are pinned; 0: they are
};

#define METHOD(object, method) ((u32)(object) << 16 | (method))

// How many methods the kernel's own objects have that make nothing or are known below. A later one may make an object, as
// may one that a driver adds to an object that is not its own; what is a driver's own does not count.
static const u8 known_methods[object_dmah + 1] = {
    [UVERBS_OBJECT_DEVICE] = 16, [UVERBS_OBJECT_PD] = 1, [UVERBS_OBJECT_CQ] = 2, [UVERBS_OBJECT_QP] = 2,
    [UVERBS_OBJECT_SRQ] = 2, [UVERBS_OBJECT_AH] = 1, [UVERBS_OBJECT_MR] = method_reg_mr + 1, [UVERBS_OBJECT_MW] = 1,
    [UVERBS_OBJECT_FLOW] = 1, [UVERBS_OBJECT_XRCD] = 1, [UVERBS_OBJECT_RWQ_IND_TBL] = 1, [UVERBS_OBJECT_WQ] = 2,
    [UVERBS_OBJECT_FLOW_ACTION] = 3, [UVERBS_OBJECT_DM] = 2, [UVERBS_OBJECT_COUNTERS] = 3,
    [UVERBS_OBJECT_ASYNC_EVENT] = 1, [object_dmah] = 2,
};

static __always_inline u32 kind_of_other(u32 object, u32 method) {
    if (object & UVERBS_ID_NS_MASK) return no_kind;
    asm volatile("" : "+r"(object));  // so that the verifier sees the bound in the register that is used
    return object <= object_dmah && method < known_methods[object] ? no_kind : unknown_kind;
}

static __always_inline struct request request_of(u32 object, u32 method) {
    switch (METHOD(object, method)) {
        case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE): return (struct request){by_write};
        case METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT): return (struct request){kind_handle};
        case METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE): return (struct request){kind_cq};
        case METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE): return (struct request){kind_qp};
        case METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE): return (struct request){kind_srq};
        case METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE): return (struct request){kind_wq};
        case METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW): return (struct request){kind_flow};
        case METHOD(UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_CREATE):
        case METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER):
        case METHOD(UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT):
            return (struct request){UVERBS_OBJECT_FLOW_ACTION};
        case METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE): return (struct request){kind_counters};
        case METHOD(object_dmah, method_dmah_alloc): return (struct request){object_dmah};
        case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG): return (struct request){kind_mr};
        case METHOD(UVERBS_OBJECT_MR, method_reg_mr): return (struct request){kind_mr, reg_mr_length, reg_mr_access};
        case METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR):
            return (struct request){kind_mr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH};
        case METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC): return (struct request){kind_dm, UVERBS_ATTR_ALLOC_DM_LENGTH};
    }
    return (struct request){kind_of_other(object, method)};
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
        case IB_USER_VERBS_CMD_CREATE_QP:
        case IB_USER_VERBS_CMD_OPEN_QP: return kind_qp;
        case IB_USER_VERBS_CMD_CREATE_SRQ: return kind_srq;
        case IB_USER_VERBS_CMD_CREATE_XSRQ: return kind_srq;
        case IB_USER_VERBS_CMD_OPEN_XRCD: return kind_xrcd;
        case IB_USER_VERBS_EX_CMD_CREATE_FLOW: return kind_flow;
        case IB_USER_VERBS_EX_CMD_CREATE_WQ: return kind_wq;
        case IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL: return kind_rwq_ind;
    }
    return no_kind;
}

// Never waits for a page, since a user can delay that for ever.
static __always_inline long read_user(void *into, u32 size, u64 from) { return bpf_probe_read_user(into, size, (void *)from); }

// A request as far as the look needs it. `kind` is no_kind where it makes nothing.
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

enum { unreadable = ~0U, no_command = ~0U };

// The header with its first attributes, which are all that most requests are looked at for; the header alone where memory
// ends behind it. How many attributes that are.
static __always_inline u32 read_header(struct asked *it, u64 from) {
    u32 count, both = sizeof it->header + first_attributes * sizeof it->attributes[0];
    if (read_user(it, both, from) != 0)
        return read_user(it->header, sizeof it->header, from) == 0 ? 0 : unreadable;
    count = header_of(it)->num_attrs;
    return count < first_attributes ? count : first_attributes;
}

// How many attributes there are to look at, when `have` are read.
static __always_inline u32 read_attributes(struct asked *it, u64 from, u32 have) {
    u32 count = header_of(it)->num_attrs;
    if (count > looked_attributes) count = looked_attributes;
    count = opaque(count);
    if (count <= have) return count;
    return read_user(it->attributes, count * sizeof it->attributes[0], from + sizeof it->header) == 0 ? count : unreadable;
}

// Of a registration: what is mapped on demand pins nothing.
static __always_inline void look_at_memory(struct made_by *it, u64 input) {
    struct ib_uverbs_reg_mr memory;
    if (read_user(&memory, sizeof memory, input) != 0) it->kind = unreadable_kind;
    else if (!(memory.access_flags & IB_UVERBS_ACCESS_ON_DEMAND)) it->bytes = memory.length;
}

// Of a re-registration, which may need room for both lengths for a moment; how many bytes are unknown where it keeps them. With
// other access what was mapped on demand may be pinned, by mlx5 with the length in the request.
static __always_inline void look_at_length_change(struct made_by *it, u64 input) {
    struct ib_uverbs_rereg_mr memory;
    if (read_user(&memory, sizeof memory, input) != 0) it->kind = unreadable_kind;
    else if (memory.flags & rereg_translation) it->bytes = memory.length;
    else if (memory.flags & rereg_access && !(memory.access_flags & IB_UVERBS_ACCESS_ON_DEMAND)) it->bytes = memory.length;
}

// Of a write command: attributes in any order, of which one is the command and another its input; the kernel takes none twice.
struct write_command {
    u64 input;
    u32 command;
    bool has_input;
};
static __always_inline struct write_command find_command(const struct ib_uverbs_attr *attributes, u32 count, u32 most) {
    struct write_command it = {0, no_command, false};
    for (u32 i = 0; i < most; ++i) {
        if (i >= count) break;
        if (attributes[i].attr_id == UVERBS_ATTR_WRITE_CMD) it.command = attributes[i].data;
        if (attributes[i].attr_id != UVERBS_ATTR_CORE_IN) continue;
        it.input = attributes[i].data;
        it.has_input = true;
    }
    return it;
}

// No program asks with so many attributes but to hide what is sought behind them.
static __always_inline bool hides(struct asked *it) { return header_of(it)->num_attrs > looked_attributes; }

static __always_inline void look_at_input(struct made_by *it, u32 command, u64 input) {
    it->kind = kind_of_command(command);
    if (it->kind == kind_mr) look_at_memory(it, input);
    if (it->kind == another_length) look_at_length_change(it, input);
}

static __always_inline void look_at_command(struct made_by *it, struct asked *asked, u64 from, u32 have) {
    struct write_command found = find_command(asked->attributes, have, first_attributes);
    if (found.command == no_command || !found.has_input) {
        u32 count = read_attributes(asked, from, have);
        if (count == unreadable) return;
        found = find_command(asked->attributes, count, looked_attributes);
    }
    if ((found.command == no_command || !found.has_input) && hides(asked)) it->kind = hidden_kind;
    else look_at_input(it, found.command, found.input);
}

static __always_inline void look_at_length(struct made_by *it, struct asked *asked, u32 count, const struct request *what) {
    const struct ib_uverbs_attr *attributes = asked->attributes;
    u64 access = 0;
    it->kind = hides(asked) ? hidden_kind : what->kind;
    for (u32 i = 0; i < looked_attributes; ++i) {
        if (i >= count) break;
        if (attributes[i].attr_id == what->length_attribute) it->bytes = attributes[i].data;
        if (what->access_attribute && attributes[i].attr_id == what->access_attribute) access = attributes[i].data;
    }
    if (access & IB_UVERBS_ACCESS_ON_DEMAND) it->bytes = 0;
}

static __always_inline struct made_by read_request(u64 argument) {
    struct asked asked;
    struct made_by it = {unreadable_kind, 0, 0};
    u32 count = read_header(&asked, argument);
    if (count == unreadable) return it;
    struct request what = request_of(header_of(&asked)->object_id, header_of(&asked)->method_id);
    if (what.kind == by_write) {
        look_at_command(&it, &asked, argument, count);
        return it;
    }
    if (what.length_attribute) {
        count = read_attributes(&asked, argument, count);
        if (count == unreadable) return it;
        look_at_length(&it, &asked, count, &what);
        return it;
    }
    it.kind = what.kind;
    if (it.kind == unknown_kind) it.bytes = METHOD(header_of(&asked)->object_id, header_of(&asked)->method_id);
    return it;
}

// In a function of its own, which gives its stack back before the charge.
static const u64 nothing_made = ~0ULL;
static __always_inline u64 packed(struct made_by it) {
    if (it.kind == no_kind || it.bytes >> largest_bits) return nothing_made;
    return (u64)it.kind << bytes_bits | it.bytes;
}
__attribute__((noinline)) u64 packed_request(u64 argument) { return packed(read_request(argument)); }

// What a security hook may return, as constants that the compiler cannot compute from each other, since the verifier does not
// follow a negation. The policy knows no other.
#define CONSTANT(number) ({ int it; asm volatile("%0 = %1" : "=w"(it) : "i"(number)); it; })
static __always_inline int refusal(int error) {
    if (error == 0) return CONSTANT(0);
    if (error == 11) return CONSTANT(-11);  // EAGAIN
    if (error == 12) return CONSTANT(-12);  // ENOMEM
    return CONSTANT(-122);                  // EDQUOT
}

// A context is refused also to a tenant that exceeds what it may have by files that it opened before.
static __always_inline int open_context(struct kernel_use *use) {
    int refused;
    if (use->created[kind_handle]) return 0;  // the kernel opens it once
    refused = refuses_more((u32)use->id);
    return refused ? refused : reserve(use->id, kind_handle, 0);
}

// What it makes is not known: nothing, while the tenant has too much of something by such a way.
static __always_inline int make_unknown(struct kernel_use *use, u32 kind, u64 method) {
    const struct guard_file *it = file_at((u32)use->id);
    int refused = refuses_more((u32)use->id);
    if (!refused && it && refuses_unknown(it)) refused = 11;  // EAGAIN
    return refused ? refused : reserve(use->id, kind, method);
}

// A guard that only watches refuses nothing.
static __always_inline bool makes_nothing(const struct kernel_use *use) { return use->forbidden && guard_mode == guard_deny; }

static __always_inline int errno_of(u32 file) {
    const struct guard_file *it = file_at(file);
    int error = it ? stamp_in_force(it)->deny_errno : 0;
    return error ? error : 122;  // EDQUOT
}

static __always_inline u64 request_bytes(u64 request) { return request & ((1ULL << bytes_bits) - 1); }

static __always_inline int try_request(struct kernel_use *use, u64 request) {
    u32 kind = request >> bytes_bits;
    u64 bytes = request_bytes(request);
    if (kind == kind_handle) return open_context(use);
    if (kind == hidden_kind) return guard_mode == guard_deny ? errno_of((u32)use->id) : 0;
    if (kind >= unknown_kind) return make_unknown(use, kind, bytes);
    return reserve(use->id, kind, bytes);
}

static __always_inline u64 registered_bytes(u64 request) { return request >> bytes_bits == kind_mr ? request_bytes(request) : 0; }

// 0, or the errno to refuse with.
static __always_inline int look_at_request(struct kernel_use *use, u64 request) {
    int refused = has_paces() ? look_at_pace((u32)use->id, registered_bytes(request)) : 0;
    if (refused) return refused;
    refused = try_request(use, request);
    if (refused != left_over) return refused;
    settle_reservation(current_thread());
    refused = try_request(use, request);
    return refused == left_over ? 0 : refused;
}

static __always_inline int look_at_forbidden(struct kernel_use *use, u64 request) {
    return makes_nothing(use) ? errno_of((u32)use->id) : look_at_request(use, request);
}

// By a file without a context, one that was in flight when the guard began, or that may make nothing. Without a context the kernel
// takes no other request than for one: whatever it seems to be, it may be that when the kernel reads it.
static __always_inline int look_at_opening(struct file *file, u64 request) {
    u64 ufile = (u64)BPF_CORE_READ(file, private_data), id;  // read so it is a number, as newer verifiers want
    struct kernel_use *use;
    bool open;
    int refused;
    if (!is_uverbs(file)) return 0;
    settle_reservation(current_thread());  // of an ioctl that another module refused; which may forget this file
    open = BPF_CORE_READ((struct ib_uverbs_file *)ufile, ucontext) != 0;
    if (open && request == nothing_made) return 0;
    if (!open && !begin_opening(ufile)) return uncountable();
    if (!open) request = (u64)kind_handle << bytes_bits;
    use = opener_of(ufile);
    id = use ? use->id : enter_file(ufile);
    use = &openers[(u32)id % opener_slots];
    refused = id && has_begun(use) ? look_at_forbidden(use, request) : uncountable();
    if (!refused || open) return refused;
    if (id) abandon(id);
    else end_opening(ufile, false);
    return refused;
}

u32 guard_asked;  // 1: the kernel has called a look while the guard was off

// In the order that costs most requests least: by an open file that may make something.
static __always_inline int look(struct file *file, u64 argument) {
    u64 ufile = (u64)file->private_data, request;
    struct kernel_use *use;
    if (guard_mode == guard_off) {
        guard_asked = 1;
        return 0;
    }
    drop_mark();
    request = packed_request(argument);
    use = opener_of(ufile);
    if (use && !use->forbidden && use->created[kind_handle] && request >> bytes_bits != kind_handle)
        return request == nothing_made ? 0 : refusal(look_at_request(use, request));
    if (use && retire_stale(use, ufile)) use = 0;
    if (use && makes_nothing(use)) return refusal(errno_of((u32)use->id));  // whatever it seems to ask for
    return refusal(look_at_opening(file, request));
}

// A context of a device is open. By a way that was not looked at, a tenant may have opened it that must not now.
// Whoever was faster than this may have found it open, and counted it.
static __always_inline void opened_guarded(struct kernel_use *use, bool counted) {
    u64 thread = current_thread();
    const struct reservation *reserved = find_reservation(thread);
    bool looked = reserved && reserved->opener == use->id;
    struct guard_file *it = file_at((u32)use->id);
    if (it && has_moved(it)) now_simple(it);
    if (counted) give_up_reservation(thread);
    else if (made(use->id, kind_handle, 0, thread, 0)) looked = true;  // it was judged
    if (opening_count) end_opening(use->file, false);
    if (!looked && refuses_more((u32)use->id)) judge((u32)use->id);
}
