// Flow steering rules, flow actions, counter sets and completion counters.
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

// ibv_comp_cntr is public since rdma-core 65; begins with its context (libibverbs/verbs.h).
struct CompletionCounter {
    ibv_context* context;
};

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
    return create<Kind::flow>(qp->context, Op::create_flow, create_flow, 0, qp, attr);
}

int destroy_flow(ibv_flow* flow) { return destroy(flow->context, Op::destroy_flow, destroy_flow, flow); }

ibv_flow_action* create_flow_action_esp(ibv_context* context, ibv_flow_action_esp_attr* attr) {
    return create<Kind::object>(context, Op::create_flow_action_esp, create_flow_action_esp, 0, context, attr);
}

int destroy_flow_action(ibv_flow_action* action) {
    return destroy(action->context, Op::destroy_flow_action, destroy_flow_action, action);
}

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr) {
    return create<Kind::counters>(context, Op::create_counters, create_counters, 0, context, attr);
}

int destroy_counters(ibv_counters* counters) {
    return destroy(counters->context, Op::destroy_counters, destroy_counters, counters);
}

CompletionCounter* create_comp_cntr(ibv_context* context, void* attr) {
    return create<Kind::object>(context, Op::create_comp_cntr, create_comp_cntr, 0, context, attr);
}

int destroy_comp_cntr(CompletionCounter* counter) {
    return destroy(counter->context, Op::destroy_comp_cntr, destroy_comp_cntr, counter);
}

const Wrapper table[] = {
    wrapper(Op::create_flow, create_flow),
    wrapper(Op::destroy_flow, destroy_flow),
    wrapper(Op::create_flow_action_esp, create_flow_action_esp),
    wrapper(Op::destroy_flow_action, destroy_flow_action),
    wrapper(Op::create_counters, create_counters),
    wrapper(Op::destroy_counters, destroy_counters),
    wrapper(Op::create_comp_cntr, create_comp_cntr),
    wrapper(Op::destroy_comp_cntr, destroy_comp_cntr),
};

}  // namespace

std::span<const Wrapper> flow_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
