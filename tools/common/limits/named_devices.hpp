// Which devices the limits of a quota directory are about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

// Where limits are published: of each tenant, and those of [process] for tenants that are made later.
std::vector<TenantPlace> limit_places(const std::string& directory);

// The devices of the machine and those in the tenants' ledgers, sorted; ports are not among them.
std::vector<std::string> known_devices(const std::string& directory);

// Removes the rows of devices that neither the policy file nor `set` nor a dynamic rule names for any tenant, that are not on
// the machine and in no ledger: what is left of a misspelt name. By the holder of the lock of the node's policy.
Result<void> drop_unnamed_devices(const std::string& directory);

}  // namespace rdmaquota
