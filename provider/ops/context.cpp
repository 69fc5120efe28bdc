#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

// The record leaves the table first, since the address may be taken again as soon as the real op has freed it. It ends
// last, when the kernel has destroyed what was still alive.
void free_context(ibv_context* verbs) {
    const NoCancellation guard;
    std::unique_ptr<Context> context(Context::remove(verbs));
    if (!context) return;
    context->watch_file(*verbs);
    real_op(*context, Op::free_context, free_context)(verbs);
    const KeepErrno keep;
    Context::end(std::move(context));
}

const Wrapper table[] = {
    wrapper(Op::free_context, free_context),
};

}  // namespace

std::span<const Wrapper> context_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
