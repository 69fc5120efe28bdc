// What each live object of a context was charged, so that exactly that is uncharged.
//
// A table with open addressing: a receipt lies at the place that its object's address hashes to, or as near behind it
// as there was room. Room for a receipt is reserved before the real call, so that nothing can fail once the object
// exists. The table keeps the size that the most objects at once asked for, until the context closes: making it smaller
// takes memory for both, in a destruction, which must not fail. The table holds disguised addresses: leak checkers would take an
// object for reachable whose plain address they find there. Thread-safe; the lock is process-local. Every function keeps errno.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include "provider/charging/kind.hpp"
#include "provider/host/disguised_address.hpp"
#include "provider/host/light_mutex.hpp"

namespace rdmaquota::provider {

// Bit i: accounts.account[i] was charged.
using AccountMask = std::uint8_t;

struct Receipt {
    DisguisedAddress object;
    std::uint64_t size = 0;
    Kind kind = Kind::nothing;
    AccountMask charged = 0;
    std::uint8_t port = 0;  // where a QP is bound and charged, 0 for none

    explicit operator bool() const noexcept { return static_cast<bool>(object); }
};
static_assert(sizeof(Receipt) == 24);

class Receipts {
public:
    Receipts() = default;
    Receipts(const Receipts&) = delete;
    ~Receipts() { delete[] table_; }

    // Makes room for one receipt; false when there is no memory. `release` gives it back, at once or when the receipt
    // has been taken out and is not filed again. Room that a cancelled thread had reserved is lost until the context
    // closes.
    bool reserve() noexcept { return room_.fetch_sub(1) > 0 || grow(); }
    void release() noexcept { room_.fetch_add(1); }

    // Files a receipt under its object, in the room that was reserved for it.
    void file(const Receipt& receipt) noexcept {
        const std::lock_guard lock(lock_);
        put(receipt);
    }

    // Takes the receipt out; an empty one for an object that was not charged. Its room stays reserved.
    Receipt take(DisguisedAddress object) noexcept {
        const std::lock_guard lock(lock_);
        for (std::size_t at = home(object); table_ && table_[at].object; at = next(at))
            if (table_[at].object == object) return remove(at);
        return {};
    }

    // Takes out all, and calls `function` with each.
    template <class Function>
    void drain(Function function) noexcept;

    bool empty() noexcept;

    LightMutex& lock() noexcept { return lock_; }

private:
    // Objects come from malloc, at least 16 bytes apart; the multiplication spreads them.
    std::size_t home(DisguisedAddress object) const noexcept {
        const auto key = object.complement() >> 4;
        return (key * 0x9e3779b97f4a7c15ULL >> 32) & mask_;
    }
    std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }
    void put(const Receipt& receipt) noexcept {
        std::size_t at = home(receipt.object);
        while (table_[at].object) at = next(at);
        table_[at] = receipt;
    }
    Receipt remove(std::size_t at) noexcept;
    bool grow() noexcept;
    bool double_table() noexcept;

    LightMutex lock_;
    Receipt* table_ = nullptr;
    std::size_t mask_ = 0;                // one less than there are places, a power of two
    std::atomic<std::int64_t> room_ = 0;  // places that may be taken, a quarter of them never; below 0 while it grows
};

// Moves up what lies behind, so that no search ends at the place that becomes free.
inline Receipt Receipts::remove(std::size_t at) noexcept {
    const Receipt taken = table_[at];
    for (std::size_t from = next(at); table_[from].object; from = next(from)) {
        const auto from_home = (from - home(table_[from].object)) & mask_;
        if (from_home < ((from - at) & mask_)) continue;
        table_[at] = table_[from];
        at = from;
    }
    table_[at].object = nullptr;
    return taken;
}

template <class Function>
void Receipts::drain(Function function) noexcept {
    const std::lock_guard lock(lock_);
    for (std::size_t i = 0; table_ && i <= mask_; ++i) {
        if (table_[i].object) function(std::as_const(table_[i]));
        table_[i] = {};
    }
}

}  // namespace rdmaquota::provider
