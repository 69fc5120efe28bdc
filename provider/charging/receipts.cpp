#include "provider/charging/receipts.hpp"

#include <memory>
#include <new>
#include <utility>

#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr std::size_t first_places = 32;

constexpr std::int64_t usable(std::size_t places) { return static_cast<std::int64_t>(places - places / 4); }

}  // namespace

// `room_` has been lowered for the caller already.
bool Receipts::grow() noexcept {
    const KeepErrno keep;
    const std::lock_guard lock(lock_);
    while (room_.load() < 0)
        if (!double_table()) {
            release();
            return false;
        }
    return true;
}

bool Receipts::double_table() noexcept {
    const std::size_t places = table_ ? 2 * (mask_ + 1) : first_places;
    auto* fresh = new (std::nothrow) Receipt[places];
    if (!fresh) return false;
    const std::size_t before = table_ ? mask_ + 1 : 0;
    const std::unique_ptr<Receipt[]> old(std::exchange(table_, fresh));
    mask_ = places - 1;
    for (std::size_t i = 0; i < before; ++i)
        if (old[i]) put(old[i]);
    room_.fetch_add(usable(places) - usable(before));
    return true;
}

bool Receipts::empty() noexcept {
    const std::lock_guard lock(lock_);
    for (std::size_t i = 0; table_ && i <= mask_; ++i)
        if (table_[i]) return false;
    return true;
}

}  // namespace rdmaquota::provider
