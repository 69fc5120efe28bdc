#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

// The kernel refuses 0 and negative numbers of entries.
std::uint64_t entries_of(int entries) noexcept { return static_cast<std::uint64_t>(std::max(entries, 0)); }

ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
    return create<Kind::cq>(context, Op::create_cq, create_cq, entries_of(entries), context, entries, channel, vector);
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
    return create<Kind::cq>(context, Op::create_cq_ex, create_cq_ex, attr->cqe, context, attr);
}

int destroy_cq(ibv_cq* cq) { return destroy(cq->context, Op::destroy_cq, destroy_cq, cq); }

int resize_cq(ibv_cq* cq, int entries) {
    Context* context = Context::find(cq->context);
    if (!context) return EINVAL;
    const auto asked = [&](std::uint64_t) { return entries_of(entries); };
    const int status = resize(*context, cq, Resource::cqe, {}, asked,
                              [&] { return real_op(*context, Op::resize_cq, resize_cq)(cq, entries); });
    return status == -1 ? errno : status;
}

// Called by ibv_get_cq_event, not by polling. A thread may wait there with asynchronous cancellation, which may end it at
// any instruction: so this has nothing to clean up, and calls functions of ours with deferred cancellation only. To
// disable cancellation is not enough: glibc (2.36, nptl/pthread_cancel.c) looks at the type only when its signal arrives.
void cq_event(ibv_cq* cq) {
    int before = PTHREAD_CANCEL_DEFERRED;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    Context* context = Context::find(cq->context);
    if (context) context->count_cq_event();
    auto* const real = context ? real_op(*context, Op::cq_event, cq_event) : nullptr;
    pthread_setcanceltype(before, nullptr);
    if (real) real(cq);
}

const Wrapper table[] = {
    wrapper(Op::create_cq, create_cq),
    wrapper(Op::create_cq_ex, create_cq_ex),
    wrapper(Op::destroy_cq, destroy_cq),
    wrapper(Op::resize_cq, resize_cq),
    wrapper(Op::cq_event, cq_event),
};

}  // namespace

std::span<const Wrapper> cq_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
