#include "tools/rdmaquotad/web/churn_rates.hpp"

#include <utility>

namespace rdmaquota {
namespace {

constexpr std::chrono::seconds apart{5};

// A sum that is lower than before is that of a tenant that came again.
double rate(std::uint64_t before, std::uint64_t now, double seconds) {
    return now > before ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

void ChurnRates::compare(const Look& now) {
    rates_.clear();
    if (older_.at == Clock::time_point{}) return;
    const double seconds = std::chrono::duration<double>(now.at - older_.at).count();
    for (const auto& [place, counts] : now.sums) {
        const auto found = older_.sums.find(place);
        const auto& before = found == older_.sums.end() ? Churn::Counts{} : found->second;
        for (const auto& row : resource_table) {
            const auto r = index(row.id);
            const auto created = rate(before.created[r], counts.created[r], seconds);
            const auto destroyed = rate(before.destroyed[r], counts.destroyed[r], seconds);
            if (created > 0 || destroyed > 0) rates_.push_back({place.first, place.second, row.id, created, destroyed});
        }
    }
}

void ChurnRates::add(Clock::time_point now, const Sums& sums) {
    Look look{now, sums};
    compare(look);
    if (now - newer_.at < apart) return;
    older_ = std::exchange(newer_, std::move(look));
}

}  // namespace rdmaquota
