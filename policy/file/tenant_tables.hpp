// [tenant.NAME] in the policy file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/file/table_reader.hpp"
#include "policy/policy.hpp"

namespace rdmaquota {

// Where the files say what check_tenants looks at, each "FILE:LINE:COL: "; empty: nowhere.
struct TenantLocations {
    std::string name, process;
    std::vector<std::string> matches;  // of each entry
    std::optional<std::vector<std::string>> devices;  // what `devices` says; none: nothing
};
using LocationsByTenant = std::map<std::string, TenantLocations, std::less<>>;

// Reads the table of all tenants of one file. A tenant stands behind those whose `match` stands before its own, or,
// where no file gives it one, which are named before it.
void read_tenants(TableReader& reader, const toml::key& key, const toml::node& node, Policy& policy,
                  LocationsByTenant& locations);

// What can only be said when all files are read: tenants that have tenants below them have no processes; `match`
// entries that never decide are warned of. A table without `match` that is named like a tenant of a template inherits the
// template's values (TenantPolicy::is_override).
Result<void> check_tenants(Policy& policy, const LocationsByTenant& locations);

// Gives a tenant with `devices`, and those below it without, an hca_handle of 0 on all other devices (TenantPolicy::hides_devices).
// After check_tenants.
Result<void> apply_devices(Policy& policy, const LocationsByTenant& locations);

// Warns of limits that can never be reached and guarantees that cannot be kept.
void warn_of_tree(Policy& policy, const LocationsByTenant& locations);

}  // namespace rdmaquota
