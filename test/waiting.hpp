// What tests in C++ wait by.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

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
