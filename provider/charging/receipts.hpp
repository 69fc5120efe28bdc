// What each live object of a context was charged, so that exactly that is uncharged.
//
// A receipt is made before the real call and filed after it, so nothing can fail once the object exists. Thread-safe;
// the lock is process-local. Every function keeps errno, except that `blank` may set it when it returns null.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "provider/host/light_mutex.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota::provider {

// Bit i: accounts.account[i] was charged.
using AccountMask = std::uint8_t;

struct Receipt {
    Receipt* next = nullptr;
    const void* object = nullptr;
    AccountMask charged = 0;
    std::uint8_t port = 0;  // where a QP is bound and charged, 0 for none
    Amounts amounts;
};

class Receipts {
public:
    Receipts() = default;
    Receipts(const Receipts&) = delete;
    ~Receipts();

    // An empty receipt; null when there is no memory. Uses a discarded one again where it can, since programs that
    // destroy go on to create.
    std::unique_ptr<Receipt> blank() noexcept;
    void discard(std::unique_ptr<Receipt> receipt) noexcept;

    // Files the receipt under `object`. Never fails: when there is no memory to grow, chains get longer.
    void file(std::unique_ptr<Receipt> receipt, const void* object) noexcept;

    // Takes the receipt out; null for an object that was not charged.
    std::unique_ptr<Receipt> take(const void* object) noexcept;

    // Takes out any receipt; null when there is none left.
    std::unique_ptr<Receipt> take_any() noexcept;

    bool empty() noexcept;

    LightMutex& lock() noexcept { return lock_; }

private:
    std::size_t bucket(const void* object) const noexcept;
    void grow() noexcept;

    LightMutex lock_;
    std::vector<Receipt*> buckets_;
    std::size_t count_ = 0;
    std::atomic<Receipt*> spare_ = nullptr;
    Receipt* unsorted_ = nullptr;  // filed while there was no memory for buckets
};

}  // namespace rdmaquota::provider
