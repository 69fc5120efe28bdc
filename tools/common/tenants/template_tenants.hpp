// Tenants of templates: made for those who need them; by root, who holds the lock of the node's policy (PolicyLock).
//
// Where templates lie above one another, as "slurm/{account}" above "slurm/{account}/{job}", a tenant such as
// "slurm/atlas" bounds what is below it. It has limits, but no ledger, and is there as long as some tenant lies below
// it.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "tools/common/tenants/tenant_files.hpp"

namespace rdmaquota {

// Who may charge an instance: its user, or for one of a cgroup, what the template's matches say.
LedgerAccess access_of_instance(const TenantPolicy& from, std::string_view key, const NameLookup& names);

// "user/#1000" for the template "user/{user}".
std::string instance_of_user(std::string_view template_name, uid_t user);

// "user/alice" for the key "user/#1000", as people and the policy file call it.
std::string shown_name(std::string_view key);

// Renames the overrides of users' tenants (TenantPolicy::is_override) to their keys: "user/alice" to "user/#1000". One of a user who
// is not known is left out, with a warning.
void resolve_overrides(Policy& policy, const NameLookup& names);

// Makes or updates the tenant that an override stands for: its limits, and its ledger unless tenants lie below it.
Result<void> put_override(const std::string& directory, const Policy& policy, const TenantPolicy& tenant,
                          const NameLookup& names);

// Makes the tenant of a template for a key that NodePolicy::find gave: a user's, or that of a cgroup, and what it lacks
// above it. One that is there gets the template's limits in force anew.
Result<void> make_instance(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                           std::string_view key, const LedgerAccess& access);

// Publishes the limits of a template's tenant, which is all that a tenant above others has.
Result<void> put_instance_limits(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                                std::string_view key);

// The same for all of templates that lie above a tenant and are missing, the outermost first: those who come below one
// that is there begin without a share.
Result<void> put_limits_above(const std::string& directory, const Policy& policy, std::string_view key);

}  // namespace rdmaquota
