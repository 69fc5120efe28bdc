#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// 0: unknown, or none.
std::uint64_t capacity_of(const DynamicRule& rule, const std::string& device, const Surroundings& now) {
    if (rule.of == CapacityOf::amount) return rule.capacity;
    if (rule.of != CapacityOf::limit) return now.capacity(rule.of, device, rule.watch);
    const auto limit = now.configured(Scope::tenant, device, rule.watch);
    return limit == unlimited ? 0 : limit;
}

// `configured` itself where the rule changes nothing.
std::uint64_t limit_by(const DynamicRule& rule, std::uint64_t configured) {
    if (configured == unlimited) return rule.tightens() ? rule.floor : unlimited;
    const auto scaled = static_cast<std::uint64_t>(static_cast<long double>(configured) * rule.factor / 100);
    const auto bounded = std::min(std::max(scaled, rule.floor), max_amount);
    return rule.tightens() ? std::min(configured, bounded) : std::max(configured, bounded);
}

std::string reason(const DynamicRule& rule, double per_cent, std::uint64_t capacity) {
    const auto turn = rule.tightens() ? fmt::format("tightened from {} % until {} %", rule.above, rule.below)
                                      : fmt::format("relaxed from {} % until {} %", rule.below, rule.above);
    return fmt::format("{} at {:.0f} % of {}, {}", info(rule.watch).name, per_cent, format_amount(rule.watch, capacity),
                       turn);
}

void add(std::vector<WantedLimit>& wanted, WantedLimit limit) {
    const auto same = std::find_if(wanted.begin(), wanted.end(), [&limit](const WantedLimit& other) {
        return other.scope == limit.scope && other.device == limit.device && other.resource == limit.resource;
    });
    if (same == wanted.end())
        wanted.push_back(std::move(limit));
    else if (limit.limit < same->limit)
        *same = std::move(limit);
}

}  // namespace

std::vector<WantedLimit> DynamicRules::evaluate(const Surroundings& now) {
    std::vector<WantedLimit> wanted;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        if (rules_[i].device != any_device) evaluate(i, rules_[i].device, now, wanted);
        if (rules_[i].device == any_device)
            for (const auto& device : now.devices) evaluate(i, device, now, wanted);
    }
    return wanted;
}

void DynamicRules::evaluate(std::size_t number, const std::string& device, const Surroundings& now,
                        std::vector<WantedLimit>& wanted) {
    const auto& rule = rules_[number];
    const auto capacity = capacity_of(rule, device, now);
    if (capacity == 0) return;
    const auto per_cent = 100.0 * static_cast<double>(now.usage(device, rule.watch)) / static_cast<double>(capacity);
    const auto known = above_.find({number, device});
    const bool changed = known == above_.end() && now.changed(rule.scope, device, rule.limit);
    bool above = known != above_.end() ? known->second : changed == rule.tightens();
    if (per_cent >= rule.above) above = true;
    if (per_cent <= rule.below) above = false;
    above_[{number, device}] = above;
    if (above != rule.tightens()) return;
    const auto configured = now.configured(rule.scope, device, rule.limit);
    const auto limit = limit_by(rule, configured);
    if (limit != configured) add(wanted, {rule.scope, device, rule.limit, limit, reason(rule, per_cent, capacity)});
}

}  // namespace rdmaquota
