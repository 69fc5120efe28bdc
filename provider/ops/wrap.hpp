// The three shapes of a wrapped op. Each leaves errno as the real op did: filing a receipt and uncharging keep it.
//
// They throw nothing, yet are not noexcept: a thread may be cancelled inside the real op, and the C library then
// unwinds through them (provider/host/cancellation.hpp).
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>

#include "provider/charging/context.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {

// One wrapped op: what is put in place of the real one.
struct Wrapper {
    Op op;
    OpPointer function;
};

template <class Function>
Wrapper wrapper(Op op, Function* function) noexcept {
    return {op, reinterpret_cast<OpPointer>(function)};
}

// The real op, typed like the wrapper that calls it.
template <class Function>
Function* real_op(const Context& context, Op op, Function*) noexcept {
    return reinterpret_cast<Function*>(context.real(op));
}

// Creates in a context of ours: charge, call, then file the receipt or uncharge. The receipt of a thread that is
// cancelled in the real call is lost: the charge stays until this process closes its last device or ends.
template <class Object, class... Args>
[[gnu::always_inline]] inline Object* create_charged(Context& context, Object* (*real)(Args...), const Amounts& amounts,
                                                     std::type_identity_t<Args>... args) {
    Receipt* const receipt = context.charge(amounts);
    if (!receipt) return nullptr;
    Object* object = real(args...);
    if (object)
        context.file(receipt, object);
    else
        context.uncharge_unused(receipt);
    return object;
}

// Creates by an op. `self` is the calling wrapper, which has the real op's type.
template <class Object, class... Args>
Object* create(const ibv_context* verbs, Op op, Object* (*self)(Args...), const Amounts& amounts,
               std::type_identity_t<Args>... args) {
    Context* context = Context::find(verbs);
    if (!context) return errno = EINVAL, nullptr;  // not a context of ours: nothing to call
    return create_charged(*context, real_op(*context, op, self), amounts, args...);
}

// Destroys the object that `receipt` is for; null for one that was not charged. The receipt was taken out before, since
// another thread's new object may get the same address, and is filed again when the real call fails.
template <class Object>
int destroy_charged(Context* context, Receipt* receipt, int (*real)(Object*), std::type_identity_t<Object>* object) {
    const int status = real(object);
    if (!receipt) return status;
    if (status == 0)
        context->uncharge_unused(receipt);
    else
        context->file(receipt, object);
    return status;
}

// Destroys by an op.
template <class Object>
int destroy(const ibv_context* verbs, Op op, int (*self)(Object*), std::type_identity_t<Object>* object) {
    Context* context = Context::find(verbs);
    if (!context) return EINVAL;
    return destroy_charged(context, context->take(object), real_op(*context, op, self), object);
}

// Resizes: `after` tells from what the object costs of `resource` now what it will cost. An increase is charged before
// the call, a decrease uncharged after it. Returns what the real op returned, or -1 for a denial with errno set. One
// at a time in a context, since the receipt is out meanwhile.
template <class After, class Call>
int resize(Context& context, const void* object, Resource resource, After after, Call call) {
    const NoCancellation guard;
    const auto alone = context.lock_resizing();
    auto receipt = context.receipts().take(object);
    if (!receipt) return call();
    const auto before = receipt->amounts.of(resource);
    const std::uint64_t amount = after(before);
    if (amount > before && !context.charge_more(*receipt, Amounts{}.add(resource, amount - before))) {
        context.receipts().file(std::move(receipt), object);
        return -1;
    }
    const int status = call();
    const auto now = status == 0 ? amount : before;
    const auto held = std::max(amount, before);
    if (held > now) context.uncharge_part(*receipt, Amounts{}.add(resource, held - now));
    receipt->amounts.set(resource, now);
    context.receipts().file(std::move(receipt), object);
    return status;
}

}  // namespace rdmaquota::provider
