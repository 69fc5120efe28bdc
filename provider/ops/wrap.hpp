// The three shapes of a wrapped op. Each leaves errno as the real op did: filing a receipt and uncharging keep it.
//
// They throw nothing, yet are not noexcept: a thread may be cancelled inside the real op, and the C library then
// unwinds through them (provider/host/cancellation.hpp).
#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <type_traits>
#include <utility>

#include "provider/charging/context.hpp"
#include "provider/charging/refusal.hpp"
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

// After a real call that created nothing. What the guard in the kernel refused is tried again for a moment; then the
// charge and the receipt's room are given back.
template <class Object, class... Args>
[[gnu::cold, gnu::noinline]] Object* create_failed(Context& context, Receipt receipt, Object* (*real)(Args...),
                                                   std::type_identity_t<Args>... args) {
    Object* object = nullptr;
    if (context.is_refusal(errno))
        call_again(context.device_name(), receipt.kind, errno,
                   [&] { return !(object = real(args...)) && context.is_refusal(errno); });
    receipt.object = object;
    if (object) return context.receipts().file(receipt), object;
    context.give_back(receipt);
    context.receipts().release();
    context.report_failure(receipt);
    if (context.is_refusal(errno)) errno = Context::denial_errno(errno, amounts_of(receipt.kind, receipt.size));
    return nullptr;
}

// Makes room for a receipt, charges, calls the real op and files the receipt; null with errno set when denied or
// failed. The receipt of a thread that is cancelled in the real call is lost: the charge stays until this process
// closes its last device or ends.
template <class Charge, class Object, class... Args>
[[gnu::always_inline]] inline Object* create_charged(Context& context, Receipt receipt, Charge charge,
                                                     Object* (*real)(Args...), std::type_identity_t<Args>... args) {
    if (!context.receipts().reserve()) [[unlikely]]
        return errno = ENOMEM, nullptr;
    const std::optional<AccountMask> charged = charge();
    if (!charged) [[unlikely]]
        return context.receipts().release(), nullptr;
    receipt.charged = *charged;
    Object* object = real(args...);
    if (!object) [[unlikely]]
        return create_failed(context, receipt, real, args...);
    receipt.object = object;
    context.receipts().file(receipt);
    return object;
}

// Creates by an op. `self` is the calling wrapper, which has the real op's type.
template <Kind kind, class Object, class... Args>
Object* create(const ibv_context* verbs, Op op, Object* (*self)(Args...), std::uint64_t size,
               std::type_identity_t<Args>... args) {
    Context* context = Context::find(verbs);
    if (!context) return errno = EINVAL, nullptr;  // not a context of ours: nothing to call
    const auto charge = [&] { return context->charge<kind>(size); };
    return create_charged(*context, {nullptr, size, kind}, charge, real_op(*context, op, self), args...);
}

// Destroys the object that `receipt` is for; an empty one for an object that was not charged. The receipt was taken out
// before, since another thread's new object may get the same address, and is filed again when the real call fails.
template <class Object>
[[gnu::always_inline]] inline int destroy_charged(Context* context, const Receipt& receipt, int (*real)(Object*),
                                                  std::type_identity_t<Object>* object) {
    const int status = real(object);
    if (!receipt) return status;
    if (status == 0) [[likely]] {
        context->uncharge(receipt);
        context->receipts().release();
    } else {
        context->receipts().file(receipt);
    }
    return status;
}

// Destroys by an op.
template <class Object>
int destroy(const ibv_context* verbs, Op op, int (*self)(Object*), std::type_identity_t<Object>* object) {
    Context* context = Context::find(verbs);
    if (!context) return EINVAL;
    return destroy_charged(context, context->receipts().take(object), real_op(*context, op, self), object);
}

// Resizes: `after` tells from an object's size now what it will be; `resource` is what its size counts. An increase is
// charged before the call, a decrease uncharged after it; `command`: what rates count of it. Returns what the real op returned, or -1 for a denial with
// errno set. One at a time in a context, since the receipt is out meanwhile.
template <class After, class Call>
int resize(Context& context, const void* object, Resource resource, Command command, After after, Call call) {
    if (!context.pace(command)) return -1;
    const NoCancellation guard;
    const auto alone = context.lock_resizing();
    auto receipt = context.receipts().take(object);
    if (!receipt) return call();
    const auto before = std::min(receipt.size, largest_charge);
    const auto amount = std::min<std::uint64_t>(after(before), largest_charge);
    if (amount > before && !context.charge_more(receipt, Amounts{}.add(resource, amount - before))) {
        context.receipts().file(receipt);
        return -1;
    }
    const int status = call();
    const auto now = status == 0 ? amount : before;
    if (amount > now) context.give_back_part(receipt, Amounts{}.add(resource, amount - now));
    if (before > now) context.uncharge_part(receipt, Amounts{}.add(resource, before - now));
    receipt.size = now;
    context.receipts().file(receipt);
    return status;
}

}  // namespace rdmaquota::provider
