// Who goes around the quota at present, by the sidecar's word.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {

// As the sidecar tells them: an array of objects with pid, comm, device, cgroup and resources (of each what the kernel
// and the ledger have). Null where no sidecar runs for the directory, or none answers within half a second.
Json bypasses(const std::string& directory);

// A process on a device that has more than it is charged for.
struct BypassView {
    std::uint32_t pid = 0;
    std::string comm;  // not yet safe to print
    std::string device;
    struct Excess {
        Resource resource;
        std::uint64_t amount;
    };
    std::vector<Excess> excess;
};
// What it does not understand, it leaves out.
std::vector<BypassView> bypass_views(const Json& bypasses);

}  // namespace rdmaquota
