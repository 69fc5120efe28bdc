// What the sidecar found out by itself: the processes that go around the quota at present, and devices that have less than
// they tell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {

// `bypasses` is an array of objects with pid, comm, tenant, device, cgroup and resources (with what kernel and ledger have of each),
// `capacity` one of objects with device, resource, what the device has told and what was found. Null when no sidecar runs
// for the directory, or none answers within half a second.
struct Findings {
    Json bypasses, capacity;
};
Findings findings(const std::string& directory);

// A process on a device that has more than it is charged for.
struct BypassView {
    std::uint32_t pid = 0;
    std::string comm;  // not yet safe to print, as the next two
    std::string tenant;
    std::string device;
    struct Excess {
        Resource resource;
        std::uint64_t amount;
    };
    std::vector<Excess> excess;
};
// Leaves out what it does not understand.
std::vector<BypassView> bypass_views(const Json& bypasses);

// A line for each device that has refused an object with less in use than it tells of, safe to print.
std::vector<std::string> capacity_lines(const Json& capacity);

}  // namespace rdmaquota
