// A mutex for a few instructions' work: taken and given back by one atomic operation each, or by a plain store while
// the process has one thread, where std::mutex takes two calls of the C library. Who finds it taken sleeps. Lockable;
// may be unlocked in a forked child of who locked it.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/single_threaded.h>

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

    // Nobody comes or goes while this thread holds the lock: it starts and joins none meanwhile (glibc's manual,
    // "Single-Threaded").
    static bool alone() noexcept { return __libc_single_threaded; }

    // Leaves it awaited, since there may be others who wait.
    [[gnu::noinline]] void wait() noexcept {
        while (state_.exchange(State::awaited, std::memory_order_acquire) != State::free) state_.wait(State::awaited);
    }

    std::atomic<State> state_ = State::free;
};

}  // namespace rdmaquota::provider
