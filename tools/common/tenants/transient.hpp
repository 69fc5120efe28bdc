// Transient tenants: those that a job starter adds to the running policy and removes again. They are in no file.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_lock.hpp"

namespace rdmaquota {

// Adds a tenant whose members and limits `tenant` says, at once and for processes that open a device from now on. The
// error says why the name cannot be used, or which user or group is not known. Waits at most `patience` for others who change
// the policy; so does remove_transient.
Result<void> add_transient(const std::string& directory, TenantPolicy tenant,
                           std::chrono::milliseconds patience = PolicyLock::default_patience);

// Makes the tenant that a key such as "user/#1000" names, of the template in force that it fits. Does nothing when it is
// there.
Result<void> make_instance_of_key(const std::string& directory, std::string_view key);

// Puts the processes of a container's cgroup into a tenant, before any other match, until the cgroup is gone. The tenant's
// members stay who they are: a container charges by the directory that it has mounted. For root.
Result<void> bind_cgroup(const std::string& directory, std::string_view name, const std::string& cgroup);

// Takes out what was bound and whose cgroup is gone. Waits at most `patience` for others who change the policy.
void drop_ended_bindings(const std::string& directory, std::chrono::milliseconds patience);

// Takes it out again; for root. Processes that are charged in it stay there, and its files until they have ended. False
// when there are such processes.
Result<bool> remove_transient(const std::string& directory, std::string_view name,
                              std::chrono::milliseconds patience = PolicyLock::default_patience);

}  // namespace rdmaquota
