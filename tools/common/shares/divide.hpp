// The division of what tenants may use, for a whole quota directory.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/shares/share_mover.hpp"

namespace rdmaquota {

// After a change of limits or tenants: asks the sidecar to divide anew; where none answers, gives each tenant its guarantee and
// of the rest its part by weight, and tells the guard that the kernel keeps. Does nothing in a directory that is one tenant's
// own.
Result<void> divide_shares(const std::string& directory,
                           std::chrono::milliseconds patience = PolicyLock::default_patience);

// The same without the guard, which a sidecar has been told by its part.
enum class Divided { by_sidecar, here };
Result<Divided> divide_grants(const std::string& directory, std::chrono::milliseconds patience);

// By weight, without asking. One mover at a time: waits for another, at most `patience`.
Result<void> divide_by_weight(const std::string& directory, ShareMover& mover,
                              std::chrono::milliseconds patience = PolicyLock::default_patience);


// What a tenant that has no limits yet may begin with: 0 of all that some tenant above it, or the node, bounds.
ScopeLimits first_grants(const std::string& directory, std::string_view key, const TenantLimits& limits);

}  // namespace rdmaquota
