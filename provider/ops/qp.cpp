#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
    return create<Kind::qp>(pd->context, Op::create_qp, create_qp, qp_size(attr->cap, attr->srq), pd, attr);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
    return create<Kind::qp>(context, Op::create_qp_ex, create_qp_ex, qp_size(attr->cap, attr->srq), context, attr);
}

// Another handle of a shared XRC QP costs what a QP does: the QP lives until its last handle is destroyed.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
    return create<Kind::qp>(context, Op::open_qp, open_qp, 0, context, attr);
}

int destroy_qp(ibv_qp* qp) { return destroy(qp->context, Op::destroy_qp, destroy_qp, qp); }

// The real op refuses a port that the device does not have; its number must not take room in the ledger.
bool has_port(Context& context, ibv_context* verbs, unsigned port) {
    using Query = int(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t);
    auto& ports = context.device_ports;
    if (ports == 0) {
        ibv_device_attr_ex attr{};
        const auto query = reinterpret_cast<Query*>(context.real(Op::query_device_ex));
        if (query(verbs, nullptr, &attr, sizeof attr.orig_attr) == 0) ports = attr.orig_attr.phys_port_cnt;
    }
    return port >= 1 && port <= ports;
}

// A move of a QP between ports, charged at both until the real call has returned.
struct Move {
    Receipt receipt;         // empty: nothing moves
    std::uint8_t after = 0;  // 0: at no port that is counted
};

// Charges a QP's move to `port`; false on denial, with errno set.
bool begin_move(Context& context, const void* qp, std::uint8_t port, Move& move) {
    const std::uint8_t after = context.counts_port(port) ? port : 0;
    const auto alone = context.lock_resizing();
    const auto receipt = context.receipts().take(qp);
    if (!receipt) return true;
    const bool moves = after != receipt.port && receipt.kind == Kind::qp;
    const bool charged = !moves || after == 0 || context.bind(receipt, after);
    context.receipts().file(receipt);
    if (moves && charged) move = {receipt, after};
    return charged;
}

// Another thread may have moved or destroyed the QP meanwhile. So it is at the port that its receipt tells now, which it
// leaves.
void end_move(Context& context, const void* qp, const Move& move, bool moved) noexcept {
    const KeepErrno keep;
    const auto alone = context.lock_resizing();
    auto receipt = context.receipts().take(qp);
    const auto left = receipt && moved ? receipt.port : move.after;
    if (left != 0) context.unbind(move.receipt, left);
    if (!receipt) return;
    if (moved) receipt.port = move.after;
    context.receipts().file(receipt);
}

// A QP counts at the port that it was last bound to, until it is destroyed: the kernel lists it there in RESET too. Its
// alternate path binds it nowhere. No lock is held while the kernel binds it, so that a context's QPs can be set up at once.
template <class Call>
int rebind(Context& context, const void* qp, std::uint8_t port, Call call) {
    const NoCancellation guard;
    Move move;
    if (!begin_move(context, qp, port, move)) return errno;
    const int status = call();
    if (move.receipt) end_move(context, qp, move, status == 0);
    return status;
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
    Context* context = Context::find(qp->context);
    if (!context) return EINVAL;
    if (!context->pace({})) return errno;
    const auto call = [&] { return real_op(*context, Op::modify_qp, modify_qp)(qp, attr, mask); };
    const bool binds = mask & IBV_QP_PORT && has_port(*context, qp->context, attr->port_num);
    const int status = binds ? rebind(*context, qp, attr->port_num, call) : call();
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
