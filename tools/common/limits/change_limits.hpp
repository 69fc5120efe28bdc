// Live changes of limits, in one call (policy_change.hpp): what `rdmaquota set` and `unset` and the control socket's "set" do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/result.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {

// One change: what was configured before, and is now, as it was written; and the amount in force, which is another when a reason
// holds it, and for a percentage `unlimited` while the device is not known.
struct LimitDone {
    LimitKey key;
    std::uint64_t before;
    std::uint64_t after;
    std::uint64_t in_force;
    Reason reason;
    LimitPart part = LimitPart::limit;  // a guarantee or a soft limit is in force as it is
};

// Changes limits of one tenant, scope, device and part, which the changes have in common: all of them, or none and an error.
// For a template those of its tenants, too; for the empty tenant, those of each. The first tenant's changes are
// returned.
Result<std::vector<LimitDone>> set_limits(const std::string& directory, const std::vector<LimitChange>& changes);

// Back to what the policy file said when it was put in force.
Result<std::vector<LimitDone>> unset_limits(const std::string& directory, const std::vector<LimitKey>& keys,
                                              LimitPart part = LimitPart::limit);

// What is in force by now, after shares were divided anew.
void read_again(const std::string& directory, std::vector<LimitDone>& done);

}  // namespace rdmaquota
