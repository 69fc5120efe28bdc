// What a device has of something, and what of that is in use.
#pragma once

#include <cstdint>
#include <string>

#include "policy/resource.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

struct DeviceFigures {
    std::uint64_t told = 0;    // by the kernel's word, whatever the policy lets device attributes tell; 0: not known
    std::uint64_t in_use = 0;  // on the whole node
    std::uint64_t found = 0;   // what it turned out to have, where that is less than it tells; 0: not known

    // "; the device tells of 100 at most; 70 are in use on this node; …"
    std::string words(Resource resource) const;
};

// Asks the kernel (libibverbs is loaded in a child process), the ledgers, and the sidecar where one runs.
DeviceFigures device_figures(const std::string& directory, const std::string& device, Resource resource);

// Takes what the sidecar's answer to the request "status" says of it.
void add_status(const Json& status, const std::string& device, Resource resource, DeviceFigures& figures);

}  // namespace rdmaquota
