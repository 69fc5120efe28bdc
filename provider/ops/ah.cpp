#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
    return create<Kind::ah>(pd->context, Op::create_ah, create_ah, 0, pd, attr);
}

int destroy_ah(ibv_ah* ah) { return destroy(ah->context, Op::destroy_ah, destroy_ah, ah); }

const Wrapper table[] = {
    wrapper(Op::create_ah, create_ah),
    wrapper(Op::destroy_ah, destroy_ah),
};

}  // namespace

std::span<const Wrapper> ah_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
