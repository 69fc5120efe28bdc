// Makes and removes tenants' directories; by root, who holds the lock of the node's policy (PolicyLock).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/ledger/access.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

Result<void> make_directory(const std::string& path, unsigned mode = 0755);

// Who may charge a tenant: everyone for `default` and for one that nothing matches; else what its matches say of users, groups and members. Names that
// are unknown are left out.
LedgerAccess access_of(const TenantPolicy& tenant, const NameLookup& names);

// The policy in force, with the limits of [process] and [node] and without those of tenants, which `fill_limits` reads
// for one.
Result<Policy> running_policy(const std::string& directory);
void fill_limits(const std::string& directory, TenantPolicy& tenant);
// The same as the policy file, or `tenant add`, has them.
void fill_limits_in_file(const std::string& directory, TenantPolicy& tenant);

// 0700 for a tenant that nothing matches: only containers are in it, which have its `here` mounted.
unsigned directory_mode_of(const TenantPolicy& tenant);

// The directories of a tenant; `mode` is that of the outermost. One that is there loses rights only, see put_limits.
Result<void> make_here(const std::string& directory, std::string_view key, unsigned mode = 0755);

// Puts limits in force at `here`, with the directories above it where they are missing; `mode` is that of the tenant's.
// One that is there loses rights only: `open_directory` gives it others once its ledger has the new members' rights.
// Where the limits of a template are named, those of its tenant are a copy of them (LimitsWriter::publish_instance).
Result<void> put_limits(const std::string& directory, std::string_view key, const TenantLimits& limits,
                        unsigned mode = 0755, const std::string& limits_of_template = {});

Result<void> open_directory(const std::string& directory, std::string_view key, unsigned mode);

// Where a tenant's members have filled its file system: removes what was moved aside, or else mounts another one in its place.
// Programs that mapped the old ledger go on with it. A member may keep the old file system full, so nothing less helps.
void free_room(const std::string& here);

// Makes the ledger where there is none, and replaces one that is not usable. Returns the path to which that one was moved,
// else the empty string.
Result<std::string> put_ledger(const TenantPlace& place, const LedgerAccess& access);

// Whether a process still has a slot in the tenant's ledger. Reaps the dead first.
bool has_owners(const TenantPlace& place);

// Deletes the ledger of a tenant that has become an inner one, unless a process still has a slot there.
void remove_unused_ledger(const TenantPlace& place);

// Deletes a tenant's directory with everything in it.
void remove_tenant_files(const std::string& directory, const TenantPlace& place);

// Whether somebody set something for it, a template's tenant, alone: it stays then, until the next `reload`.
bool has_own_limits(const TenantPlace& place);

// Deletes the directories of tenants that `policy` does not have and no process uses, and of templates' tenants that
// were above others, which are gone. Returns the keys of those that `policy` does not have and that are still in use.
std::vector<std::string> remove_ended(const std::string& directory, const Policy& policy);

}  // namespace rdmaquota
