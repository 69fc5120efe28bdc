#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "policy/policy.hpp"

namespace rdmaquota {
namespace {

// `configured` itself where the rule changes nothing.
std::uint64_t limit_by(const DynamicRule& rule, std::uint64_t configured) {
    if (configured == unlimited) return rule.tightens() ? rule.floor : unlimited;
    const auto scaled = static_cast<std::uint64_t>(static_cast<long double>(configured) * rule.factor / 100);
    const auto bounded = std::min(std::max(scaled, rule.floor), max_amount);
    return rule.tightens() ? std::min(configured, bounded) : std::max(configured, bounded);
}

// Short, since a limit's origin has place for 63 characters.
std::string reason(std::size_t number, const DynamicRule& rule, double per_cent, std::uint64_t capacity) {
    return fmt::format("[[dynamic]] rule {}: {} at {:.0f} % of {}, until {} %", number + 1, info(rule.watch).name,
                       per_cent, format_amount(rule.watch, capacity), rule.tightens() ? rule.below : rule.above);
}

// 0 where it is not known, or nothing is limited.
std::uint64_t capacity_of(const DynamicRule& rule, const std::string& tenant, const std::string& device, const Surroundings& now) {
    if (rule.of == CapacityOf::amount) return rule.capacity;
    if (rule.of != CapacityOf::limit) return now.capacity(rule.of, device, rule.watch);
    const auto limit = now.configured({tenant, Scope::tenant, device, rule.watch});
    return limit == unlimited ? 0 : limit;
}

void want(WantedLimits& wanted, const DynamicRule& rule, LimitKey key, std::uint64_t configured,
          const std::string& reason) {
    const auto limit = limit_by(rule, configured);
    if (limit == configured) return;
    const auto [same, is_new] = wanted.try_emplace(std::move(key), WantedLimit{limit, reason});
    if (!is_new && limit < same->second.limit) same->second = {limit, reason};
}

}  // namespace

WantedLimits DynamicRules::evaluate(const Surroundings& now) {
    WantedLimits wanted;
    const auto before = std::exchange(above_, {});  // what is not looked at again is forgotten
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        if (rules_[i].device != any_device) evaluate(i, rules_[i].device, now, before, wanted);
        if (rules_[i].device == any_device)
            for (const auto& device : now.devices) evaluate(i, device, now, before, wanted);
    }
    return wanted;
}

// Why the rule changes limits at present; empty: it does not.
std::string DynamicRules::reason_to_change(const Watched& watched, std::uint64_t usage, std::uint64_t capacity, const Above& before,
                                           bool held) {
    const auto& rule = rules_[watched.rule];
    if (capacity == 0) return {};  // unknown, or none
    const auto per_cent = 100.0 * static_cast<double>(usage) / static_cast<double>(capacity);
    const auto known = before.find(watched);
    bool above = known != before.end() ? known->second : held == rule.tightens();
    if (per_cent >= rule.above) above = true;
    if (per_cent <= rule.below) above = false;
    above_[watched] = above;
    return above == rule.tightens() ? reason(watched.rule, rule, per_cent, capacity) : std::string();
}

void DynamicRules::evaluate(std::size_t number, const std::string& device, const Surroundings& now, const Above& before,
                            WantedLimits& wanted) {
    const auto& rule = rules_[number];
    const auto tenants = now.tenants(rule.tenant);
    for (const auto& tenant : tenants) {
        const LimitKey limited{tenant, rule.scope, device, rule.limit};
        const bool of_limit = rule.of == CapacityOf::limit;
        const auto usage = of_limit ? now.tenant_usage(tenant, device, rule.watch) : now.usage(tenant, device, rule.watch);
        const auto why = reason_to_change({number, tenant, device}, usage, capacity_of(rule, tenant, device, now), before,
                                          now.held(limited));
        if (!why.empty()) want(wanted, rule, limited, now.configured(limited), why);
    }
}

}  // namespace rdmaquota
