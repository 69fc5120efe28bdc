// Warnings about the tree of tenants: what can never be reached or kept.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "policy/file/tenant_tables.hpp"

namespace rdmaquota {
namespace {

// An amount that `device` has in the tables of a scope.
struct At {
    const std::string& device;
    Resource resource;
};

class TreeChecks {
public:
    TreeChecks(Policy& policy, const LocationsByTenant& locations) : policy_(policy), locations_(locations) {
        for (const auto& tenant : policy.tenants)
            for (const auto* rows : {&tenant.limits[index(Scope::tenant)], &tenant.guarantees,
                                     &tenant.limits[index(Scope::process)]})
                for (const auto& row : *rows) devices_.insert(row.device);
        for (const auto* rows : {&policy.node, &policy.process})
            for (const auto& row : *rows) devices_.insert(row.device);
    }

    void run() {
        for (const auto& device : devices_)
            for (const auto& row : limit_table) check({device, row.id});
    }

private:
    void check(At at) {
        below_.clear();
        for (const auto& tenant : policy_.tenants) {
            check_limit(tenant, at);
            check_process(tenant, at);
            check_own_guarantee(tenant, at);
            check_bounded(tenant, at);
            check_guarantees(tenant.name, limit_of(tenant, at), at);
        }
        check_processes(at);
        check_guarantees(node_tenant, value_for(policy_.node, at.device, at.resource), at);
    }

    std::uint64_t limit_of(const TenantPolicy& tenant, At at) const {
        return value_for(tenant.limits[index(Scope::tenant)], at.device, at.resource);
    }

    // Whether the tenant's own tables name the device, so that each warning comes once.
    static bool names(const ScopeLimits& rows, At at) {
        const auto* row = find_row(rows, at.device);
        return row != nullptr && (*row)[index(at.resource)] != unset;
    }

    bool is_inner(const TenantPolicy& tenant) const {
        return std::any_of(policy_.tenants.begin(), policy_.tenants.end(), [&](const TenantPolicy& other) {
            return find_or_template(policy_, parent_of(other.name)) == &tenant;
        });
    }

    // The first from `tenant` upwards that may have less than `amount`, or whose other tenants below, than `child`, are guaranteed the
    // rest.
    struct Bound {
        std::string name;
        std::uint64_t amount, guaranteed;  // `guaranteed`: to others
    };
    std::optional<Bound> bound_below(std::uint64_t amount, std::string_view tenant, At at, std::string_view child = {}) {
        for (;; child = tenant, tenant = parent_of(tenant)) {
            const bool node = tenant == node_tenant;
            const auto* named = node ? nullptr : find_or_template(policy_, tenant);
            const auto limit = node               ? value_for(policy_.node, at.device, at.resource)
                               : named != nullptr ? limit_of(*named, at)
                                                  : unset;
            const auto others = limit == unset || limit == unlimited ? 0 : guaranteed_to_others(tenant, child, at, is_percentage(limit));
            if (limit != unset && are_comparable(limit, amount) && limit < amount + others)
                return Bound{node ? "[node]" : fmt::format("tenant '{}'", named->name), limit,
                             others == 0 || !is_percentage(limit) ? others : percentage(others)};
            if (node) return std::nullopt;
        }
    }

    std::uint64_t guaranteed_to_others(std::string_view parent, std::string_view child, At at, bool percent) {
        const auto all = child.empty() ? 0 : guaranteed_below(parent, at, percent);
        return all == 0 ? 0 : all - std::min(all, guarantee_of(child, at, percent));
    }

    static std::string words(const Bound& bound, Resource resource) {
        return format_amount(resource, bound.amount) +
               (bound.guaranteed == 0 ? "" : fmt::format(", of which {} are guaranteed to others", format_amount(resource, bound.guaranteed)));
    }

    void check_limit(const TenantPolicy& tenant, At at) {
        const auto limit = limit_of(tenant, at);
        if (limit == unlimited || !names(tenant.limits[index(Scope::tenant)], at)) return;
        if (const auto bound = bound_below(limit, parent_of(tenant.name), at, tenant.name))
            warn(tenant.name, fmt::format("the limit of {} {} of tenant '{}' on {} can never be reached: {} above it has {}",
                                          format_amount(at.resource, limit), info(at.resource).name, tenant.name, at.device,
                                          bound->name, words(*bound, at.resource)));
    }

    void check_process(const TenantPolicy& tenant, At at) {
        const auto& rows = tenant.limits[index(Scope::process)];
        const auto limit = value_for(rows, at.device, at.resource);
        if (limit == unlimited || !names(rows, at)) return;
        if (const auto bound = bound_below(limit, tenant.name, at))
            warn(tenant.name, fmt::format("the limit of {} {} for each process of tenant '{}' on {} can never be reached: {} "
                                          "has {}",
                                          format_amount(at.resource, limit), info(at.resource).name, tenant.name, at.device,
                                          bound->name, words(*bound, at.resource)));
    }

    // Those of all tenants: a tenant may well have less than what one process of another may have, but not each of them.
    void check_processes(At at) {
        const auto limit = value_for(policy_.process, at.device, at.resource);
        if (limit == unlimited || !names(policy_.process, at)) return;
        std::optional<Bound> bound;
        for (const auto& tenant : policy_.tenants)
            if (!is_inner(tenant) && !(bound = bound_below(limit, tenant.name, at))) return;
        warn(node_tenant, fmt::format("the limit of {} {} for each process on {} can never be reached in any tenant: {} has {}",
                                      format_amount(at.resource, limit), info(at.resource).name, at.device, bound->name,
                                      words(*bound, at.resource)));
    }

    // Where one of the two stands in another table, such as that of "*".
    void check_own_guarantee(const TenantPolicy& tenant, At at) {
        const auto own = value_for(tenant.guarantees, at.device, at.resource), limit = limit_of(tenant, at);
        if (own == unset || limit == unset || own <= limit || !are_comparable(own, limit)) return;
        if (!names(tenant.guarantees, at) && !names(tenant.limits[index(Scope::tenant)], at)) return;
        warn(tenant.name, fmt::format("tenant '{}' is guaranteed {} {} on {}, more than its limit of {}", tenant.name,
                                      format_amount(at.resource, own), info(at.resource).name, at.device,
                                      format_amount(at.resource, limit)));
    }

    // What is reserved is taken from a limit above.
    void check_bounded(const TenantPolicy& tenant, At at) {
        const auto own = value_for(tenant.guarantees, at.device, at.resource);
        if (own == unset || own == 0 || !names(tenant.guarantees, at)) return;
        const auto limits = [&](const ScopeLimits& rows) {
            return std::any_of(rows.begin(), rows.end(), [&](const DeviceLimits& row) { return row.limits[index(at.resource)] < unset; });
        };
        for (auto above = parent_of(tenant.name); above != node_tenant; above = parent_of(above))
            if (const auto* named = find_or_template(policy_, above); named != nullptr && limits(named->limits[index(Scope::tenant)])) return;
        if (limits(policy_.node)) return;
        warn(tenant.name, fmt::format("the guarantee of {} {} of tenant '{}' on {} reserves nothing: neither [node] nor a tenant above it "
                                      "has a limit to reserve it from", format_amount(at.resource, own), info(at.resource).name, tenant.name, at.device));
    }

    // Its own, or what the tenants below it are guaranteed together: amounts, or tenths of a percent.
    std::uint64_t guarantee_of(std::string_view tenant, At at, bool percent) {
        const auto* own = policy_.find(tenant);
        const auto value = own == nullptr ? unset : value_for(own->guarantees, at.device, at.resource);
        const auto counted = value == unset || is_percentage(value) != percent ? 0 : percent ? tenths_of(value) : value;
        return std::max(counted, guaranteed_below(tenant, at, percent));
    }

    std::uint64_t guaranteed_below(std::string_view parent, At at, bool percent) {
        const auto [known, is_new] = below_.try_emplace({std::string(parent), percent}, 0);
        if (!is_new) return known->second;
        std::uint64_t sum = 0;
        for (const auto& tenant : policy_.tenants)
            if (parent_of(tenant.name) == parent) sum += guarantee_of(tenant.name, at, percent);
        return known->second = sum;
    }

    void check_guarantees(std::string_view parent, std::uint64_t limit, At at) {
        if (limit == unset || limit == unlimited) return;
        const bool percent = is_percentage(limit);
        const auto below = guaranteed_below(parent, at, percent), sum = percent ? percentage(below) : below;
        if (sum <= limit) return;
        const bool node = parent == node_tenant;
        warn(parent, fmt::format("{} may use {} {} on {}, less than the {} that are guaranteed to the tenants below it",
                                 node ? "[node]" : fmt::format("tenant '{}'", parent), format_amount(at.resource, limit),
                                 info(at.resource).name, at.device, format_amount(at.resource, sum)));
    }

    void warn(std::string_view tenant, const std::string& what) {
        const auto found = locations_.find(tenant);
        policy_.warnings.push_back((found == locations_.end() ? "" : found->second.name) + what);
    }

    Policy& policy_;
    const LocationsByTenant& locations_;
    std::set<std::string> devices_;
    std::map<std::pair<std::string, bool>, std::uint64_t> below_;  // by parent: what guaranteed_below found for one device and resource
};

}  // namespace

void warn_of_tree(Policy& policy, const LocationsByTenant& locations) { TreeChecks(policy, locations).run(); }

}  // namespace rdmaquota
