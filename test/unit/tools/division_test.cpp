// The division, against a reference that hands out one unit after the other.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

#include "tools/common/shares/division.hpp"

using namespace rdmaquota;

namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), std::uint64_t{0});
}

// Each unit goes to the one that has least above its guarantee for its weight, of those that may have more.
std::vector<std::uint64_t> one_by_one(std::uint64_t total, const std::vector<ShareClaim>& claims,
                                      const std::vector<std::uint64_t>& least, const std::vector<std::uint64_t>& most) {
    auto amounts = least;
    auto left = total - std::min(total, sum(least));
    while (left > 0) {
        std::size_t next = claims.size();
        const auto level = [&](std::size_t i) {
            return static_cast<double>(amounts[i] - std::min(amounts[i], claims[i].guarantee)) / claims[i].weight;
        };
        for (std::size_t i = 0; i < claims.size(); ++i)
            if (amounts[i] < most[i] && (next == claims.size() || level(i) < level(next))) next = i;
        if (next == claims.size()) break;
        ++amounts[next];
        --left;
    }
    return amounts;
}

std::vector<std::uint64_t> reference(std::uint64_t total, const std::vector<ShareClaim>& claims) {
    std::vector<std::uint64_t> least, most, guarantees;
    for (const auto& claim : claims) {
        guarantees.push_back(claim.guarantee);
        most.push_back(std::max(claim.guarantee, std::min(claim.wanted, claim.limit)));
    }
    const auto fair = one_by_one(total, claims, guarantees, most);
    auto left = total;
    for (std::size_t i = 0; i < claims.size(); ++i) {
        const bool frozen = claims[i].used > fair[i];
        if (frozen) left -= std::min(left, claims[i].used);
        least.push_back(frozen ? 0 : claims[i].used);
        most[i] = frozen ? 0 : fair[i];
    }
    least = one_by_one(left, claims, least, most);
    for (std::size_t i = 0; i < claims.size(); ++i)
        if (claims[i].used <= fair[i]) most[i] = std::max(least[i], claims[i].limit);
    auto amounts = one_by_one(left, claims, least, most);
    for (std::size_t i = 0; i < claims.size(); ++i)
        if (claims[i].used > fair[i]) amounts[i] = fair[i];
    return amounts;
}

std::vector<std::uint64_t> divide(std::uint64_t total, std::span<const ShareClaim> claims) {
    Division division;
    const auto amounts = division.divide(total, claims);
    return {amounts.begin(), amounts.end()};
}

struct Random {
    std::mt19937 engine;
    std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(engine); }
};

// What a mover could meet: guarantees within the total, and no more in use than there is.
std::vector<ShareClaim> claims_within(std::uint64_t total, Random& random) {
    std::vector<ShareClaim> claims(1 + random.below(6));
    auto free = total;
    for (auto& claim : claims) {
        claim.limit = 1 + random.below(total + 20);
        claim.guarantee = random.below(3) == 0 ? std::min({random.below(total / 3 + 1), claim.limit, free}) : 0;
        free -= claim.guarantee;
        claim.weight = static_cast<std::uint32_t>(1 + random.below(random.below(2) == 0 ? 4 : 10'000));
        claim.wanted = random.below(2 * total);
        claim.used = claim.guarantee;
    }
    for (auto& claim : claims) {
        const auto more = random.below(2) == 0 ? 0 : std::min(free, random.below(claim.limit - claim.guarantee + 1));
        claim.used += more;
        claim.wanted = std::max(claim.wanted, claim.used);
        free -= more;
    }
    return claims;
}

}  // namespace

TEST_CASE("a division gives what handing out one by one gives") {
    Random random{std::mt19937(7)};
    for (int round = 0; round < 4000; ++round) {
        const auto total = 1 + random.below(round % 2 == 0 ? 120 : 1200);
        const auto claims = claims_within(total, random);
        const auto got = divide(total, claims);
        const auto expected = reference(total, claims);
        CAPTURE(round, total);
        CHECK(std::abs(static_cast<std::int64_t>(sum(got) - sum(expected))) <= static_cast<std::int64_t>(claims.size()));
        std::uint64_t taken = 0;
        for (std::size_t i = 0; i < claims.size(); ++i) {
            INFO("child " << i << " of " << claims.size() << ": guarantee " << claims[i].guarantee << " limit "
                          << claims[i].limit << " used " << claims[i].used << " wanted " << claims[i].wanted
                          << " weight " << claims[i].weight);
            // Units that do not divide by the weights, less than one for each, may go to one or the other.
            CHECK(std::abs(static_cast<std::int64_t>(got[i] - expected[i])) <= static_cast<std::int64_t>(claims.size()));
            CHECK(got[i] <= claims[i].limit);
            CHECK((got[i] >= claims[i].guarantee));
            taken += std::max(got[i], claims[i].used);
        }
        CHECK(taken <= total);
    }
}

// As after a limit was set below what is guaranteed, or used.
TEST_CASE("where guarantees or use are more than there is, nobody loses what it has, and nothing is handed on") {
    Random random{std::mt19937(11)};
    for (int round = 0; round < 4000; ++round) {
        const auto total = 1 + random.below(500);
        std::vector<ShareClaim> claims(1 + random.below(6));
        for (auto& claim : claims) {
            claim.limit = 1 + random.below(600);
            claim.guarantee = random.below(2) == 0 ? random.below(claim.limit + 1) : 0;
            claim.used = std::max(claim.guarantee, random.below(2) == 0 ? random.below(600) : 0);
            claim.wanted = std::max(claim.used, random.below(1000));
            claim.weight = static_cast<std::uint32_t>(1 + random.below(10'000));
        }
        const auto got = divide(total, claims);
        CAPTURE(round, total);
        std::uint64_t used = 0, taken = 0, reserved = 0;
        for (std::size_t i = 0; i < claims.size(); ++i) {
            INFO("child " << i << " of " << claims.size() << ": guarantee " << claims[i].guarantee << " limit "
                          << claims[i].limit << " used " << claims[i].used << " wanted " << claims[i].wanted);
            // Guarantees are kept by their order as long as there is something.
            const auto kept = std::min(claims[i].guarantee, total - std::min(total, reserved));
            reserved += kept;
            CHECK(got[i] >= kept);
            CHECK(got[i] <= std::max(claims[i].limit, claims[i].used));
            used += claims[i].used;
            taken += std::max(got[i], claims[i].used);
        }
        CHECK(sum(got) <= total);
        CHECK(taken <= std::max(total, used));
    }
}

TEST_CASE("the figures of the documentation") {
    const auto claim = [](std::uint64_t guarantee, std::uint32_t weight, std::uint64_t used, std::uint64_t wanted) {
        return ShareClaim{guarantee, unlimited, std::max(used, guarantee), wanted, weight};
    };
    SECTION("nobody wants anything: by weight") {
        const ShareClaim claims[] = {claim(100, 1, 0, 0), claim(100, 1, 0, 0), claim(0, 2, 0, 0)};
        CHECK(divide(1000, claims) == std::vector<std::uint64_t>{300, 300, 400});
    }
    SECTION("one borrows what the others leave, but for their guarantees") {
        const ShareClaim claims[] = {claim(100, 1, 0, 0), claim(100, 1, 0, 0), claim(0, 2, 700, 1000)};
        const auto got = divide(1000, claims);
        CHECK(got == std::vector<std::uint64_t>{100, 100, 800});
    }
    SECTION("an owner returns: its guarantee at once, the rest when the borrower frees it") {
        const ShareClaim claims[] = {claim(100, 1, 0, 500), claim(100, 1, 0, 0), claim(0, 2, 800, 800)};
        CHECK(divide(1000, claims) == std::vector<std::uint64_t>{100, 100, 533});
    }
}

TEST_CASE("large amounts and many tenants do not overflow") {
    std::vector<ShareClaim> claims(1000, ShareClaim{0, unlimited, 0, unlimited, 10'000});
    const auto got = divide(max_amount, claims);
    CHECK(sum(got) == max_amount);
    CHECK(*std::max_element(got.begin(), got.end()) - *std::min_element(got.begin(), got.end()) <= 1);
}
