// Shared receive queues and the XRC domains that they may belong to.
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
    return create<Kind::srq>(pd->context, Op::create_srq, create_srq, attr->attr.max_wr, pd, attr);
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
    return create<Kind::srq>(context, Op::create_srq_ex, create_srq_ex, attr->attr.max_wr, context, attr);
}

int destroy_srq(ibv_srq* srq) { return destroy(srq->context, Op::destroy_srq, destroy_srq, srq); }

int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
    Context* context = Context::find(srq->context);
    if (!context) return EINVAL;
    const auto call = [&] { return real_op(*context, Op::modify_srq, modify_srq)(srq, attr, mask); };
    if (!(mask & IBV_SRQ_MAX_WR)) return call();
    const int status = resize(*context, srq, Resource::srq_wr, {}, [&](std::uint64_t) { return attr->max_wr; }, call);
    return status == -1 ? errno : status;
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
    return create<Kind::xrcd>(context, Op::open_xrcd, open_xrcd, 0, context, attr);
}

int close_xrcd(ibv_xrcd* xrcd) { return destroy(xrcd->context, Op::close_xrcd, close_xrcd, xrcd); }

const Wrapper table[] = {
    wrapper(Op::create_srq, create_srq),   wrapper(Op::create_srq_ex, create_srq_ex),
    wrapper(Op::destroy_srq, destroy_srq), wrapper(Op::modify_srq, modify_srq),
    wrapper(Op::open_xrcd, open_xrcd),     wrapper(Op::close_xrcd, close_xrcd),
};

}  // namespace

std::span<const Wrapper> srq_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
