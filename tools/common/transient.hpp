// Transient tenants: those that a job starter adds to the running policy and removes again. They are in no file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Adds a tenant whose members and limits `tenant` says, at once and for processes that open a device from now on. The
// error says why the name cannot be used, or which user or group is not known.
Result<void> add_transient(const std::string& directory, TenantPolicy tenant);

// Makes the tenant that a key such as "user/#1000" names, of the template in force that it fits. Does nothing when it is
// there.
Result<void> make_instance_of_key(const std::string& directory, std::string_view key);

// Takes it out again; for root. Processes that are charged in it stay there, and its files until they have ended. False
// when there are such processes.
Result<bool> remove_transient(const std::string& directory, std::string_view name);

}  // namespace rdmaquota
