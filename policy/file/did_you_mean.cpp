#include "policy/file/did_you_mean.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// Letters that are missing, added, others, or two that change places.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    std::iota(cost[0].begin(), cost[0].end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        cost[i][0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost.back().back();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    std::string_view best;
    std::size_t least = word.size() < 6 ? 2 : 3;  // farther than that is another word
    for (const auto candidate : candidates)
        if (const auto distance = edit_distance(word, candidate); distance < least) {
            least = distance;
            best = candidate;
        }
    return best.empty() ? "" : fmt::format(", did you mean '{}'?", best);
}

}  // namespace rdmaquota
