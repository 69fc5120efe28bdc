// Device memory and DMA handles.
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

// ibv_dmah is public since rdma-core 59; begins with its context (libibverbs/verbs.h).
struct DmaHandle {
    ibv_context* context;
};

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
    return create<Kind::dm>(context, Op::alloc_dm, alloc_dm, attr->length, context, attr);
}

int free_dm(ibv_dm* dm) { return destroy(dm->context, Op::free_dm, free_dm, dm); }

DmaHandle* alloc_dmah(ibv_context* context, void* attr) {
    return create<Kind::object>(context, Op::alloc_dmah, alloc_dmah, 0, context, attr);
}

int dealloc_dmah(DmaHandle* dmah) { return destroy(dmah->context, Op::dealloc_dmah, dealloc_dmah, dmah); }

const Wrapper table[] = {
    wrapper(Op::alloc_dm, alloc_dm),
    wrapper(Op::free_dm, free_dm),
    wrapper(Op::alloc_dmah, alloc_dmah),
    wrapper(Op::dealloc_dmah, dealloc_dmah),
};

}  // namespace

std::span<const Wrapper> dm_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
