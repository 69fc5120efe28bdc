// How fast objects are made and destroyed, over the last 5 to 10 seconds, from the sums that Churn counts.
//
// One thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/rdmaquotad/bypass/churn.hpp"

namespace rdmaquota {

struct ChurnRate {
    std::string tenant;  // key; empty: not known
    std::string device;
    Resource resource{};
    double created = 0, destroyed = 0;  // a second
};

class ChurnRates {
public:
    using Clock = std::chrono::steady_clock;
    using Sums = std::map<Churn::Place, Churn::Counts>;

    // Call it every second.
    void add(Clock::time_point now, const Sums& sums);

    // Those that are not 0. Empty for the first seconds.
    const std::vector<ChurnRate>& all() const noexcept { return rates_; }

private:
    struct Look {
        Clock::time_point at;
        Sums sums;
    };
    void compare(const Look& now);

    Look older_, newer_;
    std::vector<ChurnRate> rates_;
};

}  // namespace rdmaquota
