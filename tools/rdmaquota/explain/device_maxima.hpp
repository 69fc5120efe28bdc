// How many objects a device tells that it can have.
#pragma once

#include <cstdint>
#include <string>

#include "policy/resource.hpp"

namespace rdmaquota {

// By the kernel's word, whatever the policy lets device attributes tell; 0 when unknown. Loads libibverbs in a child
// process.
std::uint64_t device_maximum(const std::string& device, Resource resource);

}  // namespace rdmaquota
