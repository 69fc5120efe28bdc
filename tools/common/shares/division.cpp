#include "tools/common/shares/division.hpp"

#include <algorithm>

namespace rdmaquota {
namespace {

std::uint64_t excess(std::uint64_t a, std::uint64_t b) noexcept { return a - std::min(a, b); }

}  // namespace

Division::Part::Part(std::uint64_t guarantee_, std::uint64_t least_, std::uint64_t most_, std::uint32_t weight_) noexcept
    : guarantee(guarantee_), least(least_), most(most_), weight(weight_), full(excess(most, guarantee) / weight) {}

std::uint64_t Division::Part::at(std::uint64_t level, std::uint64_t fraction) const noexcept {
    if (most <= guarantee || level > full) return std::max(least, most);
    return std::clamp(guarantee + level * weight + weight * fraction / whole_level, least, most);
}

bool Division::Part::grows(std::uint64_t level) const noexcept { return at(level + 1) > at(level); }

// Stops where it is too much, so that no sum overflows.
bool Division::fits(std::uint64_t level, std::uint64_t total, std::uint64_t fraction) const noexcept {
    std::uint64_t sum = 0;
    for (const auto& part : parts_)
        if ((sum += part.at(level, fraction)) > total) return false;
    return true;
}

// Where all is given out, if those who get more at the next level go on like that. `level` fits.
std::uint64_t Division::guess(std::uint64_t level, std::uint64_t total) const noexcept {
    std::uint64_t sum = 0, weights = 0;
    for (const auto& part : parts_) {
        sum += part.at(level);
        if (part.grows(level)) weights += part.weight;
    }
    return weights == 0 ? level : level + (total - sum) / weights;
}

// The highest level at which all get no more than `total`; 0 where there is none. Guesses and halving take turns: the former
// are near soon, the latter bound how often.
std::uint64_t Division::highest_level(std::uint64_t total) const noexcept {
    std::uint64_t low = 0, high = 0;
    for (const auto& part : parts_) high = std::max(high, part.full + 1);
    if (!fits(0, total)) return 0;
    if (fits(high, total)) return high;
    for (bool halve = false; high - low > 1; halve = !halve) {
        const auto level = halve ? low + (high - low) / 2 : std::clamp(guess(low, total), low + 1, high - 1);
        (fits(level, total) ? low : high) = level;
        // A guess that is right is one below what does not fit.
        if (!halve && low == level && low + 1 < high && !fits(low + 1, total)) high = low + 1;
    }
    return low;
}

// The same between this level, which fits, and the next.
std::uint64_t Division::highest_fraction(std::uint64_t level, std::uint64_t total) const noexcept {
    std::uint64_t fraction = 0;
    for (auto bit = whole_level / 2; bit > 0; bit /= 2)
        if (fits(level, total, fraction + bit)) fraction += bit;
    return fraction;
}

// Everyone gets at least its `least`, even where that is more than `total`. What is less than one for each goes to the first.
void Division::fill(std::uint64_t total, std::vector<std::uint64_t>& amounts) const {
    const auto level = highest_level(total), fraction = highest_fraction(level, total);
    amounts.clear();
    auto rest = total;
    for (const auto& part : parts_) {
        amounts.push_back(part.at(level, fraction));
        rest = excess(rest, amounts.back());
    }
    for (std::size_t i = 0; i < parts_.size() && rest > 0; ++i)
        if (amounts[i] < parts_[i].at(level + 1)) {
            ++amounts[i];
            --rest;
        }
}

std::span<const std::uint64_t> Division::divide(std::uint64_t total, std::span<const ShareClaim> claims) {
    const auto count = claims.size();
    parts_.clear();
    reserved_.clear();
    auto unreserved = total;  // guarantees that are more than the whole are cut by their order
    for (const auto& claim : claims) {
        const auto reserved = std::min({claim.guarantee, claim.limit, unreserved});
        unreserved -= reserved;
        reserved_.push_back(reserved);
        const auto most = std::max(reserved, std::min({claim.wanted, claim.limit, total}));
        parts_.emplace_back(reserved, reserved, most, claim.weight);
    }
    fill(total, fair_);
    auto left = total;  // for those who are not frozen
    const auto frozen = [&](std::size_t i) { return claims[i].used > fair_[i]; };
    for (std::size_t i = 0; i < count; ++i) {
        if (frozen(i)) left = excess(left, claims[i].used);
        parts_[i] = {reserved_[i], frozen(i) ? 0 : claims[i].used, frozen(i) ? 0 : fair_[i], claims[i].weight};
    }
    fill(left, amounts_);
    for (std::size_t i = 0; i < count; ++i)
        if (!frozen(i))
            parts_[i] = {reserved_[i], amounts_[i], std::max(amounts_[i], std::min(claims[i].limit, total)),
                         claims[i].weight};
    fill(left, amounts_);
    for (std::size_t i = 0; i < count; ++i)
        if (frozen(i)) amounts_[i] = fair_[i];
    return amounts_;
}

}  // namespace rdmaquota
