// How each kind of object is made, with valid, invalid and impossible attributes, and what it should
// cost. The costs are written down from the README's table, not taken from the provider.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "pool.hpp"

namespace oracle {

// Where a maker works and what it came to.
struct Attempt {
    Pool& pool;
    Random& random;
    ibv_device* device;
    Object made{};                 // kind, end, cost and context are set before the call; handle when it succeeded
    std::string text{};            // the call, for people
    int error = 0;                 // errno when it failed
    std::optional<Pin> context{};  // of what was made, so that nobody closes it before it is in the pool
};

// False when there is nothing to make it from, such as a QP without a PD.
using Maker = bool (*)(Attempt& attempt);

struct Made {
    const char* name;
    unsigned weight;
    Maker make;
};
std::span<const Made> makers();          // in the kernel's own terms
std::span<const Made> special_makers();  // that rxe does not have: they must fail, and cost nothing

// Runs the call and notes handle or errno.
template <class Call>
bool attempted(Attempt& attempt, Call call) {
    errno = 0;
    attempt.made.handle = call();
    attempt.error = attempt.made.handle ? 0 : errno;
    if (attempt.made.handle && attempt.made.verbs)
        attempt.context.emplace(attempt.pool.pin_context(attempt.made.verbs));
    return true;
}

// One kernel object.
inline Tally one(Resource resource) { return Tally{}.with(resource).with(Resource::hca_object); }

// Memory for MRs, the same in every process.
inline constexpr std::size_t buffer_bytes = 4 << 20;
char* buffer();

}  // namespace oracle
