// How many objects a device tells that it can have.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/device_query.hpp"

namespace rdmaquota {

// By the kernel's word, whatever the policy lets device attributes tell; 0 when unknown. Loads libibverbs in a child
// process.
DeviceMaxima device_maxima(const std::string& device);
std::uint64_t device_maximum(const std::string& device, Resource resource);

}  // namespace rdmaquota
