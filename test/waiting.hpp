// What tests in C++ wait by.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <time.h>

// Seconds of a processor that this thread has taken so far: a bound on them holds on a busy machine, too.
inline double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Whether `condition` comes true, looking ever more seldom; gives up after five minutes, which no machine is too slow for.
template <class Condition>
bool eventually(const Condition& condition) {
    const auto last = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    auto pause = std::chrono::milliseconds(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= last) return false;
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds(100));
    }
    return true;
}
