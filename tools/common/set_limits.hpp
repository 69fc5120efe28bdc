// Live changes of limits in the running policy.
#pragma once

#include <string>
#include <vector>

#include "policy/limit.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_writer.hpp"

namespace rdmaquota {

struct LimitRequest {
    Scope scope = Scope::tenant;
    std::string device;  // valid, and a place for each of the settings
    std::vector<Setting> settings;
};

// What was done: the limit that held before, and the one that holds now.
struct LimitDone {
    Resource resource;
    std::uint64_t before;
    std::uint64_t after;
};

// The running policy of a quota directory, for changing it. The error says when root is needed.
Result<PolicyWriter> open_for_change(const std::string& directory);

// Whether there is, or can be, a row for the device.
Result<void> check_room(const PolicySegment& policy, Scope scope, const std::string& device);

// Makes all changes, or none and an error. Notes that an administrator made them.
Result<std::vector<LimitDone>> set_limits(PolicyWriter& writer, const LimitRequest& request);

}  // namespace rdmaquota
