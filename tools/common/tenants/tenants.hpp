// The tenants of a quota directory, as its files show them (shm/paths.hpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// What [process] says is kept like a tenant's limits, for tenants that are made later. Not listed.
inline constexpr std::string_view everyone_key = "#process";

// Stands before the number in the key of a tenant that was removed in use and whose name is another's now: "job~1".
inline constexpr char ended_mark = '~';

struct TenantPlace {
    std::string key;   // "physics/atlas"; "user/#1000" for an instance; empty in a directory that is one tenant's own
    std::string here;

    // A template and an inner tenant have limits, but no ledger, since no process is in them.
    bool has_ledger() const;
    // Whether this user may not even see whether it has one. Containers' tenants are root's to see.
    bool is_hidden() const;
};

// Whether the directory is one tenant's own: what a container has mounted, or `rdmaquota run` has made.
bool is_own_directory(const std::string& directory);

// All that have limits: `default`, then the others sorted by key. The node's own bound (node_tenant) is among them where there is one.
std::vector<TenantPlace> tenant_places(const std::string& directory);

// A tenant by the name that people use ("user/alice") or its key; the empty name is `default`, and the tenant itself in a
// directory of its own. The error lists some names that there are.
Result<TenantPlace> find_tenant(const std::string& directory, std::string_view name);

// Whether `key` is one of the tenants that a template stands for.
bool is_instance_of(std::string_view key, std::string_view template_name);

// The template that has a tenant of this key or name; null where none has.
const TenantPolicy* template_with(const Policy& policy, std::string_view key);

// The template that a tenant is of; null for one that the policy itself names, and for one of no template.
const TenantPolicy* template_of(const Policy& policy, std::string_view key);

// Whether tenants lie below a tenant, a template or one of its tenants, by what the policy names.
bool is_inner(const Policy& policy, std::string_view key);

}  // namespace rdmaquota
