#include "provider/charging/receipts.hpp"

#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

void push(Receipt*& chain, Receipt* receipt) noexcept {
    receipt->next = chain;
    chain = receipt;
}

Receipt* pop(Receipt*& chain) noexcept {
    Receipt* first = chain;
    if (first) chain = first->next;
    return first;
}

Receipt* pop(Receipt*& chain, const void* object) noexcept {
    for (Receipt** link = &chain; *link; link = &(*link)->next)
        if ((*link)->object == object) return pop(*link);
    return nullptr;
}

}  // namespace

Receipts::~Receipts() {
    while (take_any()) {
    }
    delete spare_.load();
}

std::unique_ptr<Receipt> Receipts::blank() noexcept {
    Receipt* spare = spare_.exchange(nullptr, std::memory_order_acquire);
    return std::unique_ptr<Receipt>(spare ? new (spare) Receipt : new (std::nothrow) Receipt);
}

void Receipts::discard(std::unique_ptr<Receipt> receipt) noexcept {
    Receipt* none = nullptr;
    if (spare_.compare_exchange_strong(none, receipt.get(), std::memory_order_release)) {
        receipt.release();
        return;
    }
    const KeepErrno keep;  // free(3) of an older C library may change it
    receipt.reset();
}

// Objects come from malloc, at least 16 bytes apart; the multiplication spreads them.
std::size_t Receipts::bucket(const void* object) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object) >> 4;
    return (address * 0x9e3779b97f4a7c15ULL >> 32) & (buckets_.size() - 1);
}

void Receipts::grow() noexcept {
    const KeepErrno keep;
    std::vector<Receipt*> old;
    try {
        old.resize(buckets_.empty() ? 64 : buckets_.size() * 2);
    } catch (...) {
        return;
    }
    old.swap(buckets_);
    for (Receipt* chain : old)
        while (Receipt* receipt = pop(chain)) push(buckets_[bucket(receipt->object)], receipt);
    while (Receipt* receipt = pop(unsorted_)) push(buckets_[bucket(receipt->object)], receipt);
}

void Receipts::file(std::unique_ptr<Receipt> receipt, const void* object) noexcept {
    const std::lock_guard lock(lock_);
    if (count_ >= buckets_.size()) grow();
    receipt->object = object;
    ++count_;
    push(buckets_.empty() ? unsorted_ : buckets_[bucket(object)], receipt.release());
}

std::unique_ptr<Receipt> Receipts::take(const void* object) noexcept {
    const std::lock_guard lock(lock_);
    Receipt* found = buckets_.empty() ? nullptr : pop(buckets_[bucket(object)], object);
    if (!found) found = pop(unsorted_, object);
    if (found) --count_;
    return std::unique_ptr<Receipt>(found);
}

std::unique_ptr<Receipt> Receipts::take_any() noexcept {
    const std::lock_guard lock(lock_);
    Receipt* found = pop(unsorted_);
    for (std::size_t i = 0; !found && i < buckets_.size(); ++i) found = pop(buckets_[i]);
    if (found) --count_;
    return std::unique_ptr<Receipt>(found);
}

bool Receipts::empty() noexcept {
    const std::lock_guard lock(lock_);
    return count_ == 0;
}

}  // namespace rdmaquota::provider
