#include <fcntl.h>

#include "provider/ops/ops.hpp"

// libibverbs' private view of an MR, the same from PABI 34 to 65 (libibverbs/driver.h). `access` is from the
// registration; rereg_mr does not change it.
struct verbs_mr {
    ibv_mr mr;
    int type;
    int access;
};

namespace rdmaquota::provider {
namespace {

// How ibv_mr_init_attr begins, which is public since rdma-core 59.
struct MrAttributes {
    std::size_t length;
    int access;
};

// On-demand paging pins nothing.
std::uint64_t pinned(std::size_t length, int access) noexcept { return access & IBV_ACCESS_ON_DEMAND ? 0 : length; }

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
    return create<Kind::mr>(pd->context, Op::reg_mr, reg_mr, pinned(length, access), pd, address, length, iova, access);
}

ibv_mr* reg_mr_ex(ibv_pd* pd, MrAttributes* attr) {
    return create<Kind::mr>(pd->context, Op::reg_mr_ex, reg_mr_ex, pinned(attr->length, attr->access), pd, attr);
}

// Programs find out by a registration without a file whether the device can do it: what creates nothing costs nothing, and
// the errno is the real one. -1 is passed for a descriptor that is not open, which another thread may open meanwhile.
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd, int access) {
    if (fd < 0 || fcntl(fd, F_GETFD) < 0) {
        const Context* context = Context::find(pd->context);
        if (!context) return errno = EINVAL, nullptr;
        return real_op(*context, Op::reg_dmabuf_mr, reg_dmabuf_mr)(pd, offset, length, iova, std::min(fd, -1), access);
    }
    return create<Kind::mr>(pd->context, Op::reg_dmabuf_mr, reg_dmabuf_mr, pinned(length, access), pd, offset, length,
                            iova, fd, access);
}

// Device memory was charged as dm_bytes when it was allocated.
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
    return create<Kind::mr>(pd->context, Op::reg_dm_mr, reg_dm_mr, 0, pd, dm, offset, length, access);
}

ibv_mr* alloc_null_mr(ibv_pd* pd) { return create<Kind::mr>(pd->context, Op::alloc_null_mr, alloc_null_mr, 0, pd); }

int dereg_mr(verbs_mr* mr) { return destroy(mr->mr.context, Op::dereg_mr, dereg_mr, mr); }

// Whether the MR pages on demand and so pins nothing; `bytes` is what its receipt says.
bool on_demand(const verbs_mr& mr, std::uint64_t bytes) noexcept {
    return bytes == 0 && (mr.access & IBV_ACCESS_ON_DEMAND);
}

// Providers return the error, or -1 with errno.
int error_of(int status) noexcept { return status > 0 ? status : errno; }

// What the program gets for what the real op returned, which may have been refused with the policy's errno.
int refused_status(const Context& context, int status) {
    if (status == 0 || !context.is_refusal(error_of(status))) return status;
    const int error = Context::denial_errno(error_of(status), Amounts{}.add(Resource::mr, 1));
    if (status > 0) return error;
    errno = error;
    return status;
}

int rereg_mr(verbs_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
    Context* context = Context::find(mr->mr.context);
    if (!context) return EINVAL;
    const auto after = [&](std::uint64_t bytes) -> std::uint64_t {
        const bool demanded = on_demand(*mr, bytes);
        const bool demands = flags & IBV_REREG_MR_CHANGE_ACCESS ? (access & IBV_ACCESS_ON_DEMAND) != 0 : demanded;
        if (demands) return 0;
        if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) return length;
        return demanded ? mr->mr.length : bytes;
    };
    const auto now = mr->access & IBV_ACCESS_ON_DEMAND ? 0 : mr->mr.length;
    const bool pins_anew = flags & IBV_REREG_MR_CHANGE_TRANSLATION || now == 0;
    const Command command{true, pins_anew ? std::min(after(now), largest_charge) : 0};
    return resize(*context, mr, Resource::mr_bytes, command, after, [&] {
        const auto real = real_op(*context, Op::rereg_mr, rereg_mr);
        int status = real(mr, flags, pd, address, length, access);
        if (status == 0 || !context->is_refusal(error_of(status))) return status;
        call_again(context->device_name(), Kind::mr, error_of(status), [&] {
            status = real(mr, flags, pd, address, length, access);
            return status != 0 && context->is_refusal(error_of(status));
        });
        return refused_status(*context, status);
    });
}

const Wrapper table[] = {
    wrapper(Op::reg_mr, reg_mr),
    wrapper(Op::reg_mr_ex, reg_mr_ex),
    wrapper(Op::reg_dmabuf_mr, reg_dmabuf_mr),
    wrapper(Op::reg_dm_mr, reg_dm_mr),
    wrapper(Op::alloc_null_mr, alloc_null_mr),
    wrapper(Op::dereg_mr, dereg_mr),
    wrapper(Op::rereg_mr, rereg_mr),
};

}  // namespace

std::span<const Wrapper> mr_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
