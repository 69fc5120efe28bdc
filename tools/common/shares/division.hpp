// How tenants below one parent share what it may use: a pure function of what they have and want.
//
// 1. A guarantee is reserved for its owner, used or not.
// 2. The rest goes to those who want more, by weight (max-min: nobody gets less so that somebody with more for its weight
//    gets more), up to what they want. That is each one's fair share.
// 3. What is used stays used. Who uses more than its fair share while another one wants more is frozen: it gets its fair
//    share, which is less than it uses, so it can make nothing more. The others share what is really free.
// 4. What nobody wants is given out by weight, too, up to the limits, so that they need not ask for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/limit.hpp"

namespace rdmaquota {

struct ShareClaim {
    std::uint64_t guarantee = 0;
    std::uint64_t limit = unlimited;
    std::uint64_t used = 0;      // at least: what it uses, and what is reserved below it
    std::uint64_t wanted = 0;    // what it would use in all if it could
    std::uint32_t weight = 100;  // 1 to 10,000

    bool operator==(const ShareClaim&) const = default;
};

// One thread. Keeps its room, so that it allocates nothing where no more claims come than before.
class Division {
public:
    // How much each may use; good until the next call. With `used` not above `total` in all, the sum of the larger of `used`
    // and this is not above `total` either. For each child it takes a few dozen instructions about fifty times.
    std::span<const std::uint64_t> divide(std::uint64_t total, std::span<const ShareClaim> claims);
    // The fair shares of that division: how much each may use once nobody uses more than its own.
    std::span<const std::uint64_t> fair() const noexcept { return fair_; }

private:
    // One child while a level is looked for, in 1/16,384: it gets guarantee + level * weight, at least `least` and at most
    // `most`. The greatest weight gets one more from one part of a level to the next, at most.
    static constexpr std::uint64_t whole_level = 1 << 14;
    struct Part {
        Part(std::uint64_t guarantee, std::uint64_t least, std::uint64_t most, std::uint32_t weight) noexcept;
        std::uint64_t at(std::uint64_t level, std::uint64_t fraction = 0) const noexcept;
        bool grows(std::uint64_t level) const noexcept;

        std::uint64_t guarantee, least, most, weight;
        std::uint64_t full;  // above this level it has `most`
    };
    bool fits(std::uint64_t level, std::uint64_t total, std::uint64_t fraction = 0) const noexcept;
    std::uint64_t guess(std::uint64_t level, std::uint64_t total) const noexcept;
    std::uint64_t highest_level(std::uint64_t total) const noexcept;
    std::uint64_t highest_fraction(std::uint64_t level, std::uint64_t total) const noexcept;
    void fill(std::uint64_t total, std::vector<std::uint64_t>& amounts) const;

    std::vector<Part> parts_;
    std::vector<std::uint64_t> reserved_, fair_, amounts_;
};

}  // namespace rdmaquota
