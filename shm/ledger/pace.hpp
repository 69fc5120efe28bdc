// Rates: how many commands, or bytes, a second. One word for each bound, in CLOCK_MONOTONIC nanoseconds, by the generic cell rate
// algorithm (ITU-T I.371): the time at which all that was taken so far is paid for. A call reserves its part with one
// compare-and-swap, and then waits until it is paid for but for the burst; so whoever is killed meanwhile leaks nothing. What
// is taken is never given back by time: an idle word lies in the past, and the next call counts from now.
//
// A word can be anything (anybody who may charge can write it): what lies later than a call could have put it is taken for
// forged, and delays each call by the longest delay, no longer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policy/limit.hpp"
#include "shm/atomic.hpp"

namespace rdmaquota {

__extension__ using Product = unsigned __int128;

// A rate as it is counted with. All zero: there is none.
struct Pace {
    // Longer than any time here, and twice it is still a number.
    static constexpr std::uint64_t longest_ns = std::uint64_t{1} << 61;
    static constexpr std::uint64_t none_allowed = UINT64_MAX;

    std::uint64_t unit = 0;  // how long one command or byte takes, in 2^-32 ns
    std::uint64_t burst_ns = 0;

    bool operator==(const Pace&) const = default;
    constexpr std::uint64_t cost_ns(std::uint64_t amount) const noexcept {
        const auto cost = Product{unit} * amount >> 32;
        return cost > longest_ns ? longest_ns : static_cast<std::uint64_t>(cost);
    }
};

// `rate`: a second, or `unlimited`. `burst`: what may be taken at once; unlimited: what the rate allows in a second.
constexpr Pace pace_of(std::uint64_t rate, std::uint64_t burst) noexcept {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    if (rate == unlimited) return {};
    if (rate == 0) return {Pace::none_allowed, 0};
    Pace pace{(second_ns << 32) / rate, second_ns};
    if (burst != unlimited) pace.burst_ns = pace.cost_ns(burst);
    return pace;
}

struct Reserved {
    std::uint64_t wait_ns;
    std::uint64_t taken_ns;  // to be given to `take_back`
};

// Reserves `amount` of the rate that `word` counts. Returns how long from `now_ns` on the caller must wait for it; more than
// `longest_wait_ns`: nothing was reserved. What is larger than the burst waits until the whole burst is there, and counts at most
// as the burst and the longest wait. Any thread or process; lock-free.
inline Reserved reserve(std::uint64_t& word, const Pace& pace, std::uint64_t amount, std::uint64_t now_ns,
                        std::uint64_t longest_wait_ns) noexcept {
    if (pace.unit == Pace::none_allowed) return {UINT64_MAX, 0};
    const auto cost = pace.cost_ns(amount);
    const auto at_once = std::min(cost, pace.burst_ns);
    const auto full = now_ns + pace.burst_ns, latest = full + longest_wait_ns;
    auto before = load(word);
    for (;;) {
        const auto from = before > latest ? latest - at_once : std::max(before, now_ns);
        const auto wait = from + at_once > full ? from + at_once - full : 0;
        if (wait > longest_wait_ns) return {wait, 0};
        const auto after = std::min(from + cost, latest);
        if (compare_exchange(word, before, after)) return {wait, after - from};
    }
}

// Takes back what was reserved for a call that is denied by another rate.
inline void take_back(std::uint64_t& word, std::uint64_t taken_ns) noexcept {
    auto before = load(word);
    while (!compare_exchange(word, before, before - std::min(before, taken_ns))) {
    }
}

}  // namespace rdmaquota
