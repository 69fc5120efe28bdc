// How much of a resource there can be at all.
#pragma once

#include <cstdint>
#include <string>

#include "policy/resource.hpp"
#include "policy/sidecar.hpp"

namespace rdmaquota {

// CapacityOf::node: the node's memory. CapacityOf::device: the maximum in the device's attributes, which a child
// process asks the kernel for, once per device, and again when another one has its name. 0 when unknown, and until the device has answered: the first call for
// a device waits for that up to a second, later ones do not. One thread.
std::uint64_t capacity(CapacityOf of, const std::string& device, Resource resource);

// CapacityOf::device without waiting: 0 until the device has answered.
std::uint64_t told_by_device(const std::string& device, Resource resource);

}  // namespace rdmaquota
