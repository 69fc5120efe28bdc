#include "provider/ops.hpp"

namespace rdmaquota::provider {
namespace {

// Receive requests of a QP with an SRQ are the SRQ's. What is charged is what was asked for, also
// when the provider rounds it up.
Amounts cost(const ibv_qp_cap& cap, bool has_srq) noexcept {
    return one(Resource::qp)
        .add(Resource::send_wr, cap.max_send_wr)
        .add(Resource::recv_wr, has_srq ? 0 : cap.max_recv_wr);
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) noexcept {
    return create(pd->context, Op::create_qp, create_qp, cost(attr->cap, attr->srq), pd, attr);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) noexcept {
    return create(context, Op::create_qp_ex, create_qp_ex, cost(attr->cap, attr->srq), context, attr);
}

// A second handle of a shared XRC QP: an object of the kernel, but no new QP.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) noexcept {
    return create(context, Op::open_qp, open_qp, Amounts{}.add(Resource::hca_object, 1), context, attr);
}

int destroy_qp(ibv_qp* qp) noexcept { return destroy(qp->context, Op::destroy_qp, destroy_qp, qp); }

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) noexcept {
    Context* context = Context::find(qp->context);
    if (!context) return EINVAL;
    const int status = real_op(*context, Op::modify_qp, modify_qp)(qp, attr, mask);
    const KeepErrno keep;
    if (mask & IBV_QP_STATE) context->count_qp_change(static_cast<unsigned>(attr->qp_state), status != 0);
    return status;
}

const Wrapper table[] = {
    wrapper(Op::create_qp, create_qp),
    wrapper(Op::create_qp_ex, create_qp_ex),
    wrapper(Op::open_qp, open_qp),
    wrapper(Op::destroy_qp, destroy_qp),
    wrapper(Op::modify_qp, modify_qp),
};

}  // namespace

std::span<const Wrapper> qp_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
