// Work queues and their indirection tables.
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
    return create<Kind::wq>(context, Op::create_wq, create_wq, attr->max_wr, context, attr);
}

int destroy_wq(ibv_wq* wq) { return destroy(wq->context, Op::destroy_wq, destroy_wq, wq); }

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) {
    return create<Kind::rwq_ind>(context, Op::create_rwq_ind_table, create_rwq_ind_table, 0, context, attr);
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* indirection) {
    return destroy(indirection->context, Op::destroy_rwq_ind_table, destroy_rwq_ind_table, indirection);
}

const Wrapper table[] = {
    wrapper(Op::create_wq, create_wq),
    wrapper(Op::destroy_wq, destroy_wq),
    wrapper(Op::create_rwq_ind_table, create_rwq_ind_table),
    wrapper(Op::destroy_rwq_ind_table, destroy_rwq_ind_table),
};

}  // namespace

std::span<const Wrapper> wq_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
