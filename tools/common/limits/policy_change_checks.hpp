// What a change of limits must fulfil before anything is changed.
#pragma once

#include <string>
#include <vector>

#include "shm/policy/limits_segment.hpp"
#include "tools/common/limits/policy_change.hpp"

namespace rdmaquota {

// Soft limits are for tenants that have processes, guarantees for one tenant.
Result<void> check_part(const std::string& directory, const LimitKey& key, LimitPart part);

// Refuses a device that is not known and has the name of a tenant: the device was forgotten. `limits` are those of the tenant
// that is changed; what they name can be unset.
Result<void> check_named_device(const std::string& directory, PolicyChange::Kind kind,
                                const std::vector<LimitChange>& changes, const LimitsSegment& limits);

// A guarantee or a soft limit is an amount, and not above the limit: the policy file refuses it, too.
Result<void> check_amount(const LimitChange& change, const LimitsSegment& limits);

}  // namespace rdmaquota
