// What may still be created: the limits of a tenant and of one of its processes, compared with what they use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/policy/limits_segment.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

// One limit that bounds what a process can still create.
struct Bound {
    std::string device;  // "total" for a sum over devices; not yet safe to print
    Resource resource;
    Scope scope;
    bool total = false;  // a sum over devices
    bool soft = false;   // a soft limit whose grace period is over
    std::uint64_t usage = 0, limit = 0;
    std::uint64_t written = unset;  // the limit that is configured, where that is in force; it may be a percentage

    std::uint64_t room() const noexcept { return limit - std::min(limit, usage); }
};

// All of them for the process `pid` of the tenant, which uses nothing where it is not listed. The limits are those of
// the tenant, with all parts.
std::vector<Bound> bounds(const TenantView& tenant, const LimitsSegment& limits, int pid);

// For each device and resource the one that leaves least; a sum over devices bounds each of them. `device` is then the
// device. Without any device, those of "*".
std::vector<Bound> tightest(const std::vector<Bound>& bounds, const TenantView& tenant, const LimitsSegment& limits);

// A rate of the tenant or of each of its processes.
struct RateBound {
    std::string device;  // as Bound's
    Resource rate;
    Scope scope;
    std::uint64_t limit = 0;  // a second
    std::uint64_t burst = 0;
};
std::vector<RateBound> rate_bounds(const TenantView& tenant, const LimitsSegment& limits);

// "the tenant", "this process, all devices"
std::string whose(const Bound& bound);

}  // namespace rdmaquota
