#include "tools/common/limits/policy_change_checks.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "tools/common/limits/named_devices.hpp"

namespace rdmaquota {
namespace {

std::string_view option_of(const LimitChange& change) {
    if (change.key.scope == Scope::process) return " --process";
    if (change.part == LimitPart::soft) return is_rate(change.key.resource) ? " --burst" : " --soft";
    return change.part == LimitPart::guarantee ? " --guarantee" : "";
}

// "rdmaquota set nlp '*' qp=4"
std::string command_for_tenant(PolicyChange::Kind kind, const std::vector<LimitChange>& changes) {
    const bool sets = kind == PolicyChange::Kind::set;
    auto text = fmt::format("rdmaquota {} {} '*'", sets ? "set" : "unset", printable(changes.front().key.device));
    for (const auto& change : changes) {
        text += fmt::format(" {}", info(change.key.resource).name);
        if (sets) text += "=" + format_limit(change.key.resource, change.limit);
    }
    return text.append(option_of(changes.front()));
}

// One above others, or the node.
bool has_no_processes(const std::string& directory, const std::string& tenant) {
    if (tenant == node_tenant) return true;
    const auto place = find_tenant(directory, tenant);
    return place && !place->has_ledger() && !is_template(place->key) && place->key != default_tenant;
}

}  // namespace

Result<void> check_part(const std::string& directory, const LimitKey& key, LimitPart part) {
    if (key.scope == Scope::process && has_no_processes(directory, key.tenant))
        return Error{fmt::format("'{}' has no processes of its own; name a tenant that has, or leave out --process", printable(key.tenant))};
    if (part == LimitPart::limit) return {};
    if (key.scope == Scope::process || key.tenant == node_tenant)
        return Error{fmt::format("a {} is possible for a tenant as a whole only", name(part, key.resource))};
    if (part == LimitPart::guarantee && is_template(key.tenant))
        return Error{"a template has no guarantees; name one of its tenants"};
    if (part == LimitPart::soft && has_no_processes(directory, key.tenant))
        return Error{fmt::format("tenant '{}' has no processes, so it has no {}", key.tenant, is_rate(key.resource) ? "bursts" : "soft limits")};
    if (part == LimitPart::soft && key.device == total_device && !is_rate(key.resource))
        return Error{"there is no soft limit for the sum over devices"};
    return {};
}

Result<void> check_named_device(const std::string& directory, PolicyChange::Kind kind,
                                const std::vector<LimitChange>& changes, const LimitsSegment& limits) {
    const auto& key = changes.front().key;
    if (key.device == any_device || stands_alone(key.device)) return {};
    if (is_own_directory(directory) || limits.row(key.scope, key.device) != nullptr) return {};
    if (!find_tenant(directory, key.device)) return {};
    const auto known = known_devices(directory);
    if (std::binary_search(known.begin(), known.end(), key.device)) return {};
    return Error{fmt::format("'{}' is a tenant and not a device; did you mean: {}?", printable(key.device),
                             command_for_tenant(kind, changes))};
}

Result<void> check_amount(const LimitChange& change, const LimitsSegment& limits) {
    const auto& [tenant, scope, device, resource] = change.key;
    const auto amount = limits.amount(change.limit, device, resource);
    if (change.part == LimitPart::limit) {
        if (change.limit != unset && device == any_device && resource == Resource::hca_handle && limits.hides_devices())
            return Error{fmt::format("tenant {} has devices of its own in the policy, and no handles of others; name one of them instead "
                                     "of '*'", printable(tenant.empty() ? default_tenant : tenant))};
        const auto guarantee = scope == Scope::tenant ? limits.guarantee(device, resource) : 0;
        if (change.limit == unset || amount >= guarantee) return {};
        return Error{fmt::format("a limit of {0} {1} is below the guarantee of {2} of tenant {3} on {4}; lower the guarantee first: "
                                 "rdmaquota set {3} '{4}' {1}={5} --guarantee",
                                 format_amount(resource, change.limit), info(resource).name, format_amount(resource, guarantee),
                                 printable(tenant.empty() ? default_tenant : tenant), device, format_limit(resource, change.limit))};
    }
    if (change.part == LimitPart::guarantee && change.limit == unlimited)
        return Error{"a guarantee must be an amount, not max"};
    if (change.part == LimitPart::soft && is_rate(resource)) {
        if (amount != 0 && amount != unlimited) return {};
        return Error{"a burst is an amount above 0"};
    }
    const auto limit = limits.configured(scope, device, resource);
    if (amount == unlimited || amount <= limit) return {};
    return Error{fmt::format("a {} of {} {} is above the limit of {} of tenant {} on {} and can never be reached; raise the "
                             "limit first",
                             change.part == LimitPart::soft ? "soft limit" : "guarantee",
                             format_amount(resource, change.limit), info(resource).name, format_amount(resource, limit),
                             printable(tenant), device)};
}

}  // namespace rdmaquota
