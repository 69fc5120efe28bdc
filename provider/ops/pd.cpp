#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_pd* alloc_pd(ibv_context* context) {
    return create<Kind::pd>(context, Op::alloc_pd, alloc_pd, 0, context);
}

// A parent domain is the real provider's wrapper around a PD that is charged already: it costs nothing, since the
// kernel makes no object. dealloc_pd finds a receipt for nothing.
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
    return create<Kind::nothing>(context, Op::alloc_parent_domain, alloc_parent_domain, 0, context, attr);
}

int dealloc_pd(ibv_pd* pd) { return destroy(pd->context, Op::dealloc_pd, dealloc_pd, pd); }

const Wrapper table[] = {
    wrapper(Op::alloc_pd, alloc_pd),
    wrapper(Op::alloc_parent_domain, alloc_parent_domain),
    wrapper(Op::dealloc_pd, dealloc_pd),
};

}  // namespace

std::span<const Wrapper> pd_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
