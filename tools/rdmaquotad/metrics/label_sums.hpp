// Counters by label, where several tenants may share one: what each has counted is added up as it rises, so that a sum
// never falls when one of them goes, or gets a label of its own. Prometheus takes a counter that falls for one that
// began anew.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace rdmaquota {

template <class What>
class LabelSums {
public:
    using OfLabel = std::map<What, std::uint64_t>;

    // All that was counted for `source` so far. One that is lower than before began anew.
    void add(const std::string& source, const std::string& label, const What& what, std::uint64_t count) {
        auto& last = last_[{source, what}];
        sums_[label][what] += count >= last.count ? count - last.count : count;
        last = {count, round_};
    }

    // After all of them were added: forgets those that were not, and labels that are nobody's.
    void end_round(const std::function<bool(const std::string& label)>& in_use) {
        std::erase_if(last_, [this](const auto& entry) { return entry.second.round != round_; });
        std::erase_if(sums_, [&](const auto& entry) { return !in_use(entry.first); });
        ++round_;
    }

    const std::map<std::string, OfLabel>& all() const noexcept { return sums_; }

private:
    struct Last {
        std::uint64_t count = 0, round = 0;
    };
    std::map<std::pair<std::string, What>, Last> last_;
    std::map<std::string, OfLabel> sums_;
    std::uint64_t round_ = 0;
};

}  // namespace rdmaquota
