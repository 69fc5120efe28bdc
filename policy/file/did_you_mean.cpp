#include "policy/file/did_you_mean.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
    std::string_view best;
    std::size_t least = word.size() < 4 ? 2 : 3;  // farther than that is another word
    for (const auto candidate : candidates)
        if (const auto distance = edit_distance(word, candidate); distance < least) {
            least = distance;
            best = candidate;
        }
    return best.empty() ? "" : fmt::format(", did you mean '{}'?", best);
}

}  // namespace rdmaquota
