#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
    return create<Kind::mw>(pd->context, Op::alloc_mw, alloc_mw, 0, pd, type);
}

int dealloc_mw(ibv_mw* mw) { return destroy(mw->context, Op::dealloc_mw, dealloc_mw, mw); }

const Wrapper table[] = {
    wrapper(Op::alloc_mw, alloc_mw),
    wrapper(Op::dealloc_mw, dealloc_mw),
};

}  // namespace

std::span<const Wrapper> mw_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
