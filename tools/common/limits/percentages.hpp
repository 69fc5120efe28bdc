// Limits in percent: tells each file of limits that has one what the devices of this node have.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/device_query.hpp"

namespace rdmaquota {

// What a device has of each resource with a capacity of its own; `unset` where that is not known.
using CapacityOfDevice = std::function<LimitRow(const std::string& device)>;
LimitRow known_capacity(const DeviceMaxima& maxima);
// Asks `ask` once for each device.
CapacityOfDevice asked_once(CapacityOfDevice ask);

// Where the sidecar keeps what it learned of devices that have less than they report.
inline std::string capacity_path(const std::string& directory) { return directory + "/capacity.json"; }

// Changes the file at `path`, whose mapping of all parts is `limits`, where `capacity` says something else of one of `devices` than
// the file does. Asks nothing unless some limit there is a percentage. True when the file was changed.
Result<bool> resolve_percentages(const LimitsSegment& limits, const std::string& path, const std::vector<std::string>& devices,
                                 const CapacityOfDevice& capacity,
                                 std::chrono::milliseconds patience = PolicyLock::default_patience);

// Resolves the percentages in all files of a quota directory, by what the devices of this machine report, or less where the sidecar
// learned that before it ended.
Result<void> resolve_percentages(const std::string& directory);

}  // namespace rdmaquota
