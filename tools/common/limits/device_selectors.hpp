// Which device of this node a selector selects (is_selector): by what sysfs tells of it at present.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// The first device that has this PCI address, node GUID or netdev, by the number of its uverbs device; none: the node has no such
// device. `sys` is where sysfs is mounted.
std::optional<BoundDevice> select_device(std::string_view selector, const std::string& sys = "/sys");

// Selects the devices of all selectors in `limits`. Tables that are about the same device become one.
void bind_devices(TenantLimits& limits);

// Selects again in all published limits, after devices have come, gone or got other names.
Result<void> bind_devices_again(const std::string& directory);

}  // namespace rdmaquota
