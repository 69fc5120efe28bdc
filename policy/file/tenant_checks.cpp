// What can only be said of tenants when all files are read.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "policy/braces.hpp"
#include "policy/file/tenant_tables.hpp"

namespace rdmaquota {
namespace {

// All tenants that lie above another one.
class InnerTenants {
public:
    explicit InnerTenants(const Policy& policy) {
        for (const auto& tenant : policy.tenants)
            for (std::string_view below = tenant.name; parent_of(below) != node_tenant; below = parent_of(below))
                add(parent_of(below), tenant.name);
    }

    // Of a tenant below `tenant`, or below some instance of it; empty: there is none.
    std::string_view below(std::string_view tenant) const {
        if (const auto found = below_.find(tenant); found != below_.end()) return found->second;
        if (is_template(tenant)) return first(below_, tenant, true);
        return first(templates_, tenant, false);
    }

private:
    using Names = std::map<std::string_view, std::string_view>;

    void add(std::string_view inner, std::string_view below) {
        below_.emplace(inner, below);
        if (is_template(inner)) templates_.emplace(inner, below);
    }

    static std::string_view first(const Names& names, std::string_view tenant, bool instances) {
        for (const auto& [inner, below] : names)
            if (instances ? is_instance(inner, tenant) : is_instance(tenant, inner)) return below;
        return "";
    }

    Names below_, templates_;
};

Result<void> check_inner(const TenantPolicy& tenant, std::string_view below, const TenantLocations& at) {
    if (!tenant.matches.empty())
        return Error{
            fmt::format("{}tenant '{}' has no processes, since '{}' lies below it; move match to a tenant of "
                        "its own, such as '{}/other'",
                        at.matches.front(), tenant.name, below, tenant.name)};
    if (!tenant.limits[index(Scope::process)].empty())
        return Error{
            fmt::format("{}tenant '{}' has no processes, since '{}' lies below it; move process to the tenants "
                        "below it",
                        at.process, tenant.name, below)};
    if (!tenant.softs.empty())
        return Error{fmt::format("{}tenant '{}' has no soft limits, since '{}' lies below it; write them there", at.name,
                                 tenant.name, below)};
    return {};
}

// The template that has a tenant of this name; null: no template has one.
const TenantPolicy* template_with(const Policy& policy, const InnerTenants& inner, const TenantPolicy& tenant) {
    if (is_template(tenant.name) || tenant.name == default_tenant) return nullptr;
    const bool is_inner = !inner.below(tenant.name).empty();
    for (const auto& other : policy.tenants)
        if (is_template(other.name) && is_instance(tenant.name, other.name) &&
            (is_inner ? !inner.below(other.name).empty() : !other.matches.empty()))
            return &other;
    return nullptr;
}

// Gives `rows` the cells of `from` that it lacks.
void inherit(ScopeLimits& rows, const ScopeLimits& from) {
    for (const auto& [device, limits] : from) {
        auto& row = row_for(rows, device);
        for (std::size_t i = 0; i < limits.size(); ++i)
            if (row[i] == unset) row[i] = limits[i];
    }
}

template <class T>
void inherit(std::optional<T>& value, const std::optional<T>& from) {
    if (!value) value = from;
}

void inherit(TenantPolicy& tenant, const TenantPolicy& from) {
    tenant.is_override = true;
    tenant.own_limits = tenant.limits;
    tenant.own_softs = tenant.softs;
    inherit(tenant.mode, from.mode);
    inherit(tenant.deny_errno, from.deny_errno);
    inherit(tenant.weight, from.weight);
    inherit(tenant.grace_s, from.grace_s);
    inherit(tenant.max_delay_ms, from.max_delay_ms);
    for (std::size_t scope = 0; scope < tenant.limits.size(); ++scope) inherit(tenant.limits[scope], from.limits[scope]);
    inherit(tenant.softs, from.softs);
}

// A table without match that is named like a tenant of a template overrides that tenant's values. With match, two tenants
// would have one name: that of the table, and the template's, which is "user/#1000" only inside.
Result<void> apply_overrides(Policy& policy, const InnerTenants& inner, const LocationsByTenant& locations) {
    for (auto& tenant : policy.tenants) {
        const auto* from = template_with(policy, inner, tenant);
        if (from == nullptr) continue;
        if (tenant.matches.empty()) {
            inherit(tenant, *from);
        } else if (has_braces(from->name, user_braces)) {
            const auto at = locations.find(tenant.name);
            return Error{fmt::format("{}tenant '{}' is named like a tenant of the template '{}'; remove its match to override "
                                     "that tenant's limits, or rename it",
                                     at == locations.end() ? "" : at->second.name, tenant.name, from->name)};
        }
    }
    return {};
}

// Whether some name could be of both. In doubt it could.
bool may_overlap(std::string_view a, std::string_view b) {
    for (;;) {
        const auto one = a.substr(0, a.find('/')), other = b.substr(0, b.find('/'));
        const auto same_to = [&](std::size_t n) { return one.substr(0, n) == other.substr(0, n); };
        const auto open = std::min({one.find('{'), other.find('{'), one.size(), other.size()});
        const bool literal = one.find('{') == one.npos && other.find('{') == other.npos;
        if (literal ? one != other : !same_to(open)) return false;
        if (one.size() == a.size() || other.size() == b.size()) return one.size() == a.size() && other.size() == b.size();
        a.remove_prefix(one.size() + 1);
        b.remove_prefix(other.size() + 1);
    }
}

// The tenant of such a name would have the limits of either, as it came.
Result<void> check_overlaps(const Policy& policy, const LocationsByTenant& locations) {
    for (auto tenant = policy.tenants.begin(); tenant != policy.tenants.end(); ++tenant)
        for (auto other = policy.tenants.begin(); other != tenant; ++other) {
            if (!is_template(tenant->name) || !is_template(other->name) || !may_overlap(tenant->name, other->name)) continue;
            const auto at = locations.find(tenant->name);
            return Error{fmt::format("{}templates '{}' and '{}' can have tenants of the same name; begin their names differently",
                                     at == locations.end() ? "" : at->second.name, other->name, tenant->name)};
        }
    return {};
}

// A template for cgroups passes over values that make no name; each user has one.
bool is_always_named(const std::string& name) {
    return !is_template(name) || (has_braces(name, user_braces) && std::count(name.begin(), name.end(), '{') == 1);
}

// Finds entries that hold only where an entry before them holds, too.
class Shadows {
public:
    // The location of such an entry before `match`; empty: there is none.
    std::string find(const Match& match) const {
        for (unsigned keys = 0; keys < 16; ++keys)
            if (const auto found = seen_.find(parts(match, keys)); found != seen_.end()) return found->second;
        return "";
    }

    void add(const Match& match, const std::string& location) { seen_.emplace(parts(match, 15), location); }

private:
    using Parts = std::array<std::string, 4>;

    static Parts parts(const Match& match, unsigned keys) {
        Parts all{match.user, match.group, match.cgroup, match.unit};
        for (unsigned i = 0; i < all.size(); ++i)
            if ((keys >> i & 1U) == 0) all[i].clear();
        return all;
    }

    std::map<Parts, std::string> seen_;
};

}  // namespace

Result<void> check_tenants(Policy& policy, const LocationsByTenant& locations) {
    const InnerTenants inner(policy);
    if (const auto apart = check_overlaps(policy, locations); !apart) return apart;
    if (const auto applied = apply_overrides(policy, inner, locations); !applied) return applied;
    Shadows shadows;
    for (const auto& tenant : policy.tenants) {
        const auto found = locations.find(tenant.name);
        if (found == locations.end()) continue;
        const auto& at = found->second;
        const auto below = inner.below(tenant.name);
        if (!below.empty())
            if (const auto good = check_inner(tenant, below, at); !good) return good;
        const bool of_jobs = policy.slurm && tenant.name.starts_with("slurm/");  // lies above jobs' tenants
        if (below.empty() && tenant.matches.empty() && is_template(tenant.name) && !of_jobs)
            policy.warnings.push_back(
                fmt::format("{}template '{}' has no match, so no process is in it; add match", at.name, tenant.name));
        for (std::size_t i = 0; i < tenant.matches.size(); ++i) {
            const auto earlier = shadows.find(tenant.matches[i]);
            if (!earlier.empty())
                policy.warnings.push_back(
                    fmt::format("{}this entry of tenant '{}' never decides: the one at {} holds "
                                "first; move or remove one of the two",
                                at.matches[i], tenant.name, earlier.substr(0, earlier.size() - 2)));
            else if (is_always_named(tenant.name))
                shadows.add(tenant.matches[i], at.matches[i]);
        }
    }
    return {};
}

}  // namespace rdmaquota
