#include "shm/ledger/pace.hpp"

#include <random>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

using namespace rdmaquota;

namespace {

constexpr std::uint64_t ms = 1'000'000, second = 1000 * ms;

// A rate of 100 a second with a burst of 10.
constexpr auto hundred = pace_of(100, 10);

}  // namespace

TEST_CASE("A burst comes at once, and then one after the other") {
    std::uint64_t word = 0;
    const auto now = 5 * second;
    for (int i = 0; i < 10; ++i) CHECK(reserve(word, hundred, 1, now, second).wait_ns == 0);
    for (std::uint64_t i = 1; i <= 100; ++i) CHECK(reserve(word, hundred, 1, now, second).wait_ns == i * 10 * ms);
    SECTION("what would wait too long takes nothing") {
        const auto before = word;
        CHECK(reserve(word, hundred, 1, now, second).wait_ns > second);
        CHECK(word == before);
    }
    SECTION("an idle time brings back a burst, no more") {
        const auto later = now + 3600 * second;
        for (int i = 0; i < 10; ++i) CHECK(reserve(word, hundred, 1, later, second).wait_ns == 0);
        CHECK(reserve(word, hundred, 1, later, second).wait_ns == 10 * ms);
    }
    SECTION("what is taken back is free again") {
        take_back(word, 500 * ms);
        CHECK(reserve(word, hundred, 1, now, second).wait_ns == 51 * 10 * ms);
    }
}

TEST_CASE("Without a burst of its own a rate has that of a second") {
    CHECK(pace_of(100, unlimited).burst_ns == second);
    CHECK(pace_of(unlimited, 5) == Pace{});
    std::uint64_t word = 0;
    CHECK(reserve(word, pace_of(1, unlimited), 1, second, 0).wait_ns == 0);
    CHECK(reserve(word, pace_of(1, unlimited), 1, second, 2 * second).wait_ns == second);
}

TEST_CASE("A rate of 0 allows nothing") {
    std::uint64_t word = 0;
    CHECK(reserve(word, pace_of(0, 10), 1, second, 60 * second).wait_ns == UINT64_MAX);
    CHECK(word == 0);
}

TEST_CASE("What is larger than the burst waits for the whole burst") {
    std::uint64_t word = 0;
    const auto now = second;
    CHECK(reserve(word, hundred, 1000, now, second).wait_ns == 0);
    CHECK(reserve(word, hundred, 1, now, second).wait_ns > second);
    CHECK(word == now + 100 * ms + second);  // no more of it is counted
    CHECK(reserve(word, hundred, 1000, now + 100 * ms, second).wait_ns == second);
}

TEST_CASE("What is taken back is what was taken") {
    const auto now = 9 * second;
    std::uint64_t word = now + second / 2;
    const auto before = word;
    take_back(word, reserve(word, hundred, 1000, now, second).taken_ns);
    CHECK(word == before);
}

TEST_CASE("Bytes of large registrations at high rates are counted to a nanosecond") {
    const auto pace = pace_of(std::uint64_t{20} << 30, std::uint64_t{40} << 30);
    CHECK(pace.cost_ns(std::uint64_t{20} << 30) == second);
    CHECK(pace.burst_ns == 2 * second);
    CHECK(pace_of(1, unlimited).cost_ns(largest_charge) == Pace::longest_ns);
    CHECK(pace_of(max_amount, unlimited).cost_ns(max_amount) > second - second / 100);
}

TEST_CASE("A forged word delays each call by the longest delay, no longer") {
    const auto now = 7 * second;
    std::minstd_rand random(1);
    for (int i = 0; i < 1000; ++i) {
        std::uint64_t word = i == 0 ? UINT64_MAX : std::uint64_t{random()} << 32 | random();
        const auto forged = word;
        CHECK(reserve(word, hundred, 1, now, second).wait_ns <= second);
        CHECK(word <= now + hundred.burst_ns + second);
        CHECK(reserve(word, hundred, 1, now + second, second).wait_ns <= second);
        INFO(forged);
    }
}

TEST_CASE("Many threads share a rate") {
    constexpr std::uint64_t threads = 4, calls = 20'000;
    const auto pace = pace_of(second, 1);  // one a nanosecond
    std::uint64_t word = second;
    std::vector<std::jthread> all;
    for (std::uint64_t i = 0; i < threads; ++i)
        all.emplace_back([&] {
            for (std::uint64_t n = 0; n < calls; ++n) reserve(word, pace, 1, second, second);
        });
    all.clear();
    CHECK(word == second + threads * calls);
}
