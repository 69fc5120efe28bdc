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
    std::string device;  // valid for each of the settings
    std::vector<Setting> settings;
};

// One change: the limit that was in force before, and the one that is now.
struct LimitDone {
    Resource resource;
    std::uint64_t before;
    std::uint64_t after;
};

// The running policy of a quota directory, for changing it. The error says when root is needed.
Result<PolicyWriter> open_for_change(const std::string& directory);

// An error when there is no row for the device and no room for one.
Result<void> check_room(const PolicySegment& policy, Scope scope, const std::string& device);

// Makes all changes, or none and returns an error. Marks them as an administrator's.
Result<std::vector<LimitDone>> set_limits(PolicyWriter& writer, const LimitRequest& request);

}  // namespace rdmaquota
