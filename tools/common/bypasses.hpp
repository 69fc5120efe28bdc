// The processes that go around the quota at present, as the sidecar reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "tools/common/json_fwd.hpp"

namespace rdmaquota {

// An array of objects with pid, comm, device, cgroup and resources (with what kernel and ledger have of each). Null when
// no sidecar runs for the directory, or none answers within half a second.
Json bypasses(const std::string& directory);

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

}  // namespace rdmaquota
