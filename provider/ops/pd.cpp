#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_pd* alloc_pd(ibv_context* context) noexcept {
    return create(context, Op::alloc_pd, alloc_pd, one(Resource::pd), context);
}

// A parent domain is the provider's own wrapping of a PD that was charged when it was made: the
// kernel knows of no new object, so there is nothing to pay. The empty receipt keeps the accounts
// whole when dealloc_pd comes for it.
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) noexcept {
    return create(context, Op::alloc_parent_domain, alloc_parent_domain, Amounts{}, context, attr);
}

int dealloc_pd(ibv_pd* pd) noexcept { return destroy(pd->context, Op::dealloc_pd, dealloc_pd, pd); }

const Wrapper table[] = {
    wrapper(Op::alloc_pd, alloc_pd),
    wrapper(Op::alloc_parent_domain, alloc_parent_domain),
    wrapper(Op::dealloc_pd, dealloc_pd),
};

}  // namespace

std::span<const Wrapper> pd_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
