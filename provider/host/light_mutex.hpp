// A mutex for critical sections of a few instructions. Locking and unlocking are one atomic operation each, or a plain
// store while the process has one thread, where std::mutex calls the C library twice. A thread that finds it locked
// sleeps. A forked child may unlock what its parent's thread locked before the fork.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/single_threaded.h>

#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {

class LightMutex {
public:
    void lock() noexcept {
        if (alone()) return state_.store(State::taken, std::memory_order_relaxed);
        auto state = State::free;
        if (!state_.compare_exchange_strong(state, State::taken, std::memory_order_acquire)) [[unlikely]]
            wait();
    }
    void unlock() noexcept {
        if (alone()) return state_.store(State::free, std::memory_order_relaxed);
        if (state_.exchange(State::free, std::memory_order_release) == State::awaited) [[unlikely]]
            state_.notify_one();
    }

private:
    enum class State : std::uint32_t { free, taken, awaited };

    // Stays the same while this thread holds the lock, since it starts and joins no thread meanwhile (glibc's manual,
    // "Single-Threaded").
    static bool alone() noexcept { return __libc_single_threaded; }

    // Leaves the state awaited, since other threads may be waiting too.
    [[gnu::noinline]] void wait() noexcept {
        const KeepErrno keep;
        while (state_.exchange(State::awaited, std::memory_order_acquire) != State::free) state_.wait(State::awaited);
    }

    std::atomic<State> state_ = State::free;
};

}  // namespace rdmaquota::provider
