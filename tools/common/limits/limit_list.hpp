// Every limit that is in force for a tenant, used or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shm/policy/limits_segment.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {

struct LimitView {
    Scope scope;
    std::string device;  // "*" for each device that has no row of its own, "total"; not yet safe to print
    Resource resource;
    std::uint64_t limit = unlimited;  // what holds now; as all here, `unlimited` for none
    std::uint64_t configured = unlimited;
    std::uint64_t written = unset;  // what is configured, which may be a percentage; `unset` where nothing is
    std::uint64_t soft = unlimited;
    std::uint64_t guarantee = 0;
    Reason reason = Reason::configured;
    std::string why = {};        // of the reason; not yet safe to print
    std::string_view from = {};  // "policy", "[process]", "set"
};

// Of a segment with all parts: the tenant's as a whole first, then those of each process.
std::vector<LimitView> limits_in_force(const LimitsSegment& limits);

void print_limits(const Terminal& terminal, const std::vector<LimitView>& limits);
Json limits_json(const std::vector<LimitView>& limits);

}  // namespace rdmaquota
