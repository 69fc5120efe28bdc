// What a device tells that it can have, by the kernel's own word: ibv_query_device tells what the quota leaves where the policy has
// clamp_device_attr.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "policy/resource.hpp"

namespace rdmaquota {

using DeviceMaxima = std::array<std::uint64_t, resource_count>;  // 0: not known

// Loads libibverbs and its providers and opens the device, so call it in a child process. Empty where that fails.
std::string query_device(const std::string& device);

// Asks a child process; all 0 where that fails.
DeviceMaxima device_maxima(const std::string& device);

// Parses a text of query_device, which libraries may have written something in front of.
DeviceMaxima parse_maxima(const std::string& text);

}  // namespace rdmaquota
