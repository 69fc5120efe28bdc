// Atomic access to words of a shared segment, which are plain integers in shm/ledger/layout.hpp.
//
// Everything is sequentially consistent: the proofs in shm/ledger/ledger.hpp are about one order of all
// steps, and on x86-64 the read-modify-writes cost the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rdmaquota {

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

template <class T>
T load(const T& word) noexcept {
    return std::atomic_ref<T>(const_cast<T&>(word)).load();
}

template <class T>
void store(T& word, T value) noexcept {
    std::atomic_ref<T>(word).store(value);
}

inline std::uint64_t add(std::uint64_t& word, std::uint64_t amount) noexcept {
    return std::atomic_ref<std::uint64_t>(word).fetch_add(amount);
}

inline std::uint64_t subtract(std::uint64_t& word, std::uint64_t amount) noexcept {
    return std::atomic_ref<std::uint64_t>(word).fetch_sub(amount);
}

// On failure `expected` is what was there.
template <class T>
bool compare_exchange(T& word, T& expected, T desired) noexcept {
    return std::atomic_ref<T>(word).compare_exchange_strong(expected, desired);
}

// For data that is only shown to people: copied word by word between shared memory and an object of this process, so a
// copy may mix old and new. The size of T is a multiple of 8 bytes.
using Word [[gnu::may_alias]] = std::uint64_t;

template <class T>
void show(T& shared, const T& own) noexcept {
    static_assert(sizeof(T) % sizeof(Word) == 0);
    for (std::size_t i = 0; i < sizeof(T) / sizeof(Word); ++i)
        __atomic_store_n(reinterpret_cast<Word*>(&shared) + i, reinterpret_cast<const Word*>(&own)[i],
                         __ATOMIC_RELAXED);
}

template <class T>
void look(T& own, const T& shared) noexcept {
    static_assert(sizeof(T) % sizeof(Word) == 0);
    for (std::size_t i = 0; i < sizeof(T) / sizeof(Word); ++i)
        reinterpret_cast<Word*>(&own)[i] =
            __atomic_load_n(reinterpret_cast<const Word*>(&shared) + i, __ATOMIC_RELAXED);
}

inline void raise_to(std::uint64_t& word, std::uint64_t value) noexcept {
    std::uint64_t current = std::atomic_ref<std::uint64_t>(word).load(std::memory_order_relaxed);
    while (current < value && !compare_exchange(word, current, value)) {
    }
}

}  // namespace rdmaquota
