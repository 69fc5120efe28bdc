// How much of a resource there can be at all.
#pragma once

#include <cstdint>
#include <string>

#include "policy/resource.hpp"
#include "policy/sidecar.hpp"

namespace rdmaquota {

// CapacityOf::node: the node's memory. CapacityOf::device: the maximum in the device's attributes, which
// a child process asks libibverbs for once per device. 0 when it is not known.
std::uint64_t capacity(CapacityOf of, const std::string& device, Resource resource);

}  // namespace rdmaquota
