#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

namespace rdmaquota {

DynamicLimits::DynamicLimits(Node& node, NodeEvents& events, Capacity capacity)
    : node_(node), events_(events), capacity_(std::move(capacity)) {}

void DynamicLimits::start(std::vector<DynamicRule> rules) {
    rules_ = DynamicRules(std::move(rules));
    said_unwritable_ = false;
}

DynamicLimits::Held DynamicLimits::find_held() {
    Held all;
    for (auto& [key, tenant] : node_.tenants())
        for (const auto& held : tenant.held())
            if (held.reason == Reason::rule) all[{key, held.scope, held.device, held.resource}] = held;
    return all;
}

// A rule for a template is for all its tenants.
std::vector<std::string> DynamicLimits::tenants_of(const std::string& rule_tenant) const {
    std::vector<std::string> keys;
    for (const auto* tenant : node_.with_ledger())
        if (rule_tenant == "*" || rule_tenant == tenant->key() || rule_tenant == tenant->name() ||
            is_instance_of(tenant->key(), rule_tenant))
            keys.push_back(tenant->key());
    return keys;
}

std::uint64_t DynamicLimits::configured(const LimitKey& key) {
    const auto* tenant = node_.find(key.tenant);
    if (tenant == nullptr || tenant->limits() == nullptr) return unlimited;
    return tenant->limits()->configured(key.scope, key.device, key.resource);
}

Surroundings DynamicLimits::surroundings(const std::vector<std::string>& devices, const NodeUsage& usage) {
    Surroundings now;
    now.devices = devices;
    now.tenants = [this](const std::string& tenant) { return tenants_of(tenant); };
    now.usage = [this, &usage](const std::string& key, const std::string& device, Resource resource) {
        const auto* tenant = node_.find(key);
        return tenant == nullptr ? 0 : usage.of_node_for(*tenant, device, resource);
    };
    now.tenant_usage = [this, &usage](const std::string& key, const std::string& device, Resource resource) {
        const auto* tenant = node_.find(key);
        return tenant == nullptr ? 0 : usage.of_tenant(*tenant, device, resource);
    };
    now.capacity = capacity_;
    now.configured = [this](const LimitKey& key) { return configured(key); };
    now.held = [this](const LimitKey& key) { return held_.contains(key); };
    return now;
}

void DynamicLimits::apply(const std::vector<std::string>& devices, const NodeUsage& usage) {
    held_ = find_held();
    if (rules_.size() == 0 && held_.empty()) return;
    if (!node_.writable()) {
        if (!said_unwritable_)
            log(Priority::warning, "the policy has dynamic rules, but limits cannot be changed from here");
        said_unwritable_ = true;
        return;
    }
    change_to(rules_.evaluate(surroundings(devices, usage)));
}

void DynamicLimits::restore() {
    for (auto& [key, tenant] : node_.tenants()) tenant.refresh();
    held_ = find_held();
    if (node_.writable()) change_to({});
}

// Opens the limits only of tenants for which something changes.
void DynamicLimits::change_to(const WantedLimits& wanted) {
    std::set<std::string> tenants;
    for (const auto& [key, limit] : wanted) {
        const auto held = held_.find(key);
        if (held == held_.end() || held->second.limit != limit.limit) tenants.insert(key.tenant);
    }
    for (const auto& [key, held] : held_)
        if (!wanted.contains(key)) tenants.insert(key.tenant);
    for (const auto& key : tenants)
        if (auto* tenant = node_.find(key)) change(*tenant, wanted);
    if (!tenants.empty()) held_ = find_held();
}

// Not the limits that were just published: rules and holds belong to those before.
void DynamicLimits::change(Tenant& tenant, const WantedLimits& wanted) {
    auto writer = tenant.writer();
    if (!writer) return log(Priority::warning, writer.error());
    if (tenant.limits() == nullptr || tenant.limits()->superseded()) return;
    const auto of_tenant = [&](const LimitKey& key) { return key.tenant == tenant.key(); };
    for (const auto& [key, held] : held_)
        if (of_tenant(key) && !wanted.contains(key)) release(tenant, *writer, key);
    for (const auto& [key, limit] : wanted)
        if (of_tenant(key)) hold(tenant, *writer, key, limit);
    tenant.refresh();
}

// What another reason holds stays where it is less.
void DynamicLimits::hold(Tenant& tenant, LimitsWriter& writer, const LimitKey& key, const WantedLimit& wanted) {
    const auto before = writer.limits().limit(key.scope, key.device, key.resource);
    const auto reason = load_reason(writer.limits().row(key.scope, key.device), key.resource);
    if (reason == Reason::rule && before == wanted.limit) return;
    if (reason != Reason::rule && reason != Reason::configured && before <= wanted.limit) return;
    const auto done = writer.hold(key.scope, key.device, key.resource, wanted.limit, Reason::rule, wanted.reason);
    if (!done) return log(Priority::error, done.error());
    if (before != wanted.limit)
        emit(wanted.limit < before ? SidecarKind("tightened") : SidecarKind("relaxed"), tenant, key, before, wanted.limit, wanted.reason);
}

void DynamicLimits::release(Tenant& tenant, LimitsWriter& writer, const LimitKey& key) {
    if (load_reason(writer.limits().row(key.scope, key.device), key.resource) != Reason::rule) return;
    const auto before = writer.limits().limit(key.scope, key.device, key.resource);
    writer.release(key.scope, key.device, key.resource);
    emit("restored", tenant, key, before, writer.limits().limit(key.scope, key.device, key.resource), "as configured");
}

void DynamicLimits::emit(SidecarKind kind, const Tenant& tenant, const LimitKey& key, std::uint64_t before,
                         std::uint64_t after, const std::string& why) {
    auto holder = key;
    holder.tenant = tenant.name();
    events_.emit(Priority::notice, kind,
                 Json{{"tenant", tenant.name()},
                      {"scope", name(key.scope)},
                      {"device", key.device},
                      {"resource", info(key.resource).name},
                      {"before", limit_json(before)},
                      {"limit", limit_json(after)},
                      {"reason", why}},
                 fmt::format("{} of {} on {}: {} -> {}; {}", info(key.resource).name, holder_of(holder), key.device,
                             format_amount(key.resource, before), format_amount(key.resource, after), why));
}

}  // namespace rdmaquota
