// The three shapes of a wrapped op. Each keeps errno as the real op left it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>

#include "provider/charging/context.hpp"

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

class KeepErrno {
public:
    KeepErrno() noexcept : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;

private:
    int saved_;
};

// Creates in a context of ours: charge, call, then file the receipt or uncharge.
template <class Object, class... Args>
Object* create_charged(Context& context, Object* (*real)(Args...), const Amounts& amounts,
                       std::type_identity_t<Args>... args) noexcept {
    auto receipt = context.charge(amounts);
    if (!receipt) return nullptr;
    Object* object = real(args...);
    const KeepErrno keep;
    if (object)
        context.receipts().file(std::move(receipt), object);
    else
        context.uncharge(std::move(receipt));
    return object;
}

// Creates by an op. `self` is the calling wrapper, which has the real op's type.
template <class Object, class... Args>
Object* create(const ibv_context* verbs, Op op, Object* (*self)(Args...), const Amounts& amounts,
               std::type_identity_t<Args>... args) noexcept {
    Context* context = Context::find(verbs);
    if (!context) return errno = EINVAL, nullptr;  // not a context of ours: nothing to call
    return create_charged(*context, real_op(*context, op, self), amounts, args...);
}

// Destroys what `receipt` is for, if there is one: it was taken out first, so that a new object at the
// same address finds its place free, and is put back when the real function fails.
template <class Object>
int destroy_charged(Context* context, std::unique_ptr<Receipt> receipt, int (*real)(Object*),
                    std::type_identity_t<Object>* object) noexcept {
    const int status = real(object);
    if (!receipt) return status;
    const KeepErrno keep;
    if (status == 0)
        context->uncharge(std::move(receipt));
    else
        context->receipts().file(std::move(receipt), object);
    return status;
}

// Destroys by an op.
template <class Object>
int destroy(const ibv_context* verbs, Op op, int (*self)(Object*), std::type_identity_t<Object>* object) noexcept {
    Context* context = Context::find(verbs);
    if (!context) return EINVAL;
    return destroy_charged(context, context->receipts().take(object), real_op(*context, op, self), object);
}

// Resizes: `after` tells from what the object costs of `resource` what it will cost. What that is more
// is charged before the call, what it is less is uncharged after it. Returns what the real op
// returned, or -1 for a denial with errno set. One at a time in a context: the receipt is out meanwhile.
template <class After, class Call>
int resize(Context& context, const void* object, Resource resource, After after, Call call) noexcept {
    const auto alone = context.lock_resizing();
    auto receipt = context.receipts().take(object);
    if (!receipt) return call();
    const auto before = receipt->amounts.of(resource);
    const std::uint64_t amount = after(before);
    if (amount > before && !context.charge_more(*receipt, Amounts{}.add(resource, amount - before))) {
        const KeepErrno keep;
        context.receipts().file(std::move(receipt), object);
        return -1;
    }
    const int status = call();
    const KeepErrno keep;
    const auto now = status == 0 ? amount : before;
    const auto held = std::max(amount, before);
    if (held > now) context.uncharge_part(*receipt, Amounts{}.add(resource, held - now));
    receipt->amounts.set(resource, now);
    context.receipts().file(std::move(receipt), object);
    return status;
}

}  // namespace rdmaquota::provider
