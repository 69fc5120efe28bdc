// Virtual time for the simulation of a cluster: events in the order of their times, and random numbers from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster::sim {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {  // splitmix64
        auto z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

class Events : public Clock {
public:
    explicit Events(std::uint64_t seed) : random(seed) {}
    Time now() override { return now_; }
    Time time() const { return now_; }
    void after(Time delay, std::function<void()> what) { queue_.push({now_ + delay, count_++, std::move(what)}); }
    // Something that takes up to `most`, seldom ten times as long.
    Time delay(Time most) {
        const auto length = Time(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.count())) + 1));
        return random.one_in(20) ? 10 * length : length;
    }
    // Runs the next event; false: none is left before `end`.
    bool step(Time end) {
        if (queue_.empty() || queue_.top().time > end) return false;
        now_ = queue_.top().time;
        auto what = std::move(const_cast<Event&>(queue_.top()).what);
        queue_.pop();
        what();
        return true;
    }

    Random random;

private:
    struct Event {
        Time time;
        std::uint64_t number;
        std::function<void()> what;
        bool operator<(const Event& other) const {
            return time != other.time ? time > other.time : number > other.number;
        }
    };
    std::priority_queue<Event> queue_;
    Time now_{1'000'000'000};
    std::uint64_t count_ = 0;
};

}  // namespace rdmaquota::cluster::sim
