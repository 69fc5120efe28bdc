#include "shm/policy/compiled_sidecar.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

CompiledRule compile_rule(const DynamicRule& rule) {
    CompiledRule compiled{};
    rule.device.copy(compiled.device, sizeof compiled.device - 1);
    compiled.watch = static_cast<std::uint32_t>(rule.watch);
    compiled.of = static_cast<std::uint32_t>(rule.of);
    compiled.limit = static_cast<std::uint32_t>(rule.limit);
    compiled.scope = static_cast<std::uint32_t>(rule.scope);
    compiled.above = rule.above;
    compiled.below = rule.below;
    compiled.factor = rule.factor;
    compiled.capacity = rule.capacity;
    compiled.floor = rule.floor;
    rule.tenant.copy(compiled.tenant, sizeof compiled.tenant - 1);
    return compiled;
}

bool is_known(const CompiledRule& rule) {
    return rule.watch < resource_count && rule.limit < resource_count &&
           rule.of <= static_cast<std::uint32_t>(CapacityOf::amount) &&
           rule.scope <= static_cast<std::uint32_t>(Scope::tenant) && rule.below < rule.above;
}

bool valid_tenant(const std::string& tenant) {
    return tenant == "*" || tenant == node_tenant || check_tenant_name(tenant) || check_template_name(tenant);
}

std::optional<DynamicRule> decompile_rule(const CompiledRule& compiled) {
    DynamicRule rule;
    rule.device.assign(compiled.device, strnlen(compiled.device, sizeof compiled.device));
    rule.tenant.assign(compiled.tenant, strnlen(compiled.tenant, sizeof compiled.tenant));
    if (!is_known(compiled) || !valid_device(rule.device) || !valid_tenant(rule.tenant)) return std::nullopt;
    rule.watch = static_cast<Resource>(compiled.watch);
    rule.of = static_cast<CapacityOf>(compiled.of);
    rule.limit = static_cast<Resource>(compiled.limit);
    rule.scope = static_cast<Scope>(compiled.scope);
    rule.above = compiled.above;
    rule.below = compiled.below;
    rule.factor = compiled.factor;
    rule.capacity = compiled.capacity;
    rule.floor = compiled.floor;
    return rule;
}

}  // namespace

Result<void> compile_sidecar(const Policy& policy, CompiledSidecar& into) {
    if (policy.dynamic.size() > most_dynamic_rules)
        return Error{
            fmt::format("{} dynamic rules; at most {} are possible", policy.dynamic.size(), most_dynamic_rules)};
    if (policy.sidecar.backstop.size() >= sizeof into.backstop)
        return Error{fmt::format("the backstop's path is longer than {} bytes", sizeof into.backstop - 1)};
    for (const auto& rule : policy.dynamic)
        if (rule.tenant.size() >= tenant_name_bytes)
            return Error{fmt::format("a dynamic rule's tenant has more than {} bytes", tenant_name_bytes - 1)};
    into.metrics_port = static_cast<std::uint16_t>(policy.sidecar.metrics_port);
    into.guard = static_cast<std::uint8_t>(policy.sidecar.guard);
    into.web = static_cast<std::uint8_t>(policy.sidecar.web);
    into.web_port = static_cast<std::uint16_t>(policy.sidecar.web_port);
    into.rule_count = static_cast<std::uint16_t>(policy.dynamic.size());
    policy.sidecar.backstop.copy(into.backstop, sizeof into.backstop - 1);
    std::transform(policy.dynamic.begin(), policy.dynamic.end(), into.rules, compile_rule);
    return {};
}

namespace {

constexpr std::string MetricsAccess::* metrics_texts[] = {&MetricsAccess::address, &MetricsAccess::certificate, &MetricsAccess::key,
                                                          &MetricsAccess::token, &MetricsAccess::client_ca};

}  // namespace

std::string compile_metrics(const MetricsAccess& metrics) {
    std::string text;
    if (metrics == MetricsAccess{}) return text;
    for (const auto part : metrics_texts) text.append(metrics.*part).push_back('\0');
    return text.append(metrics.pods ? "p" : "").append(metrics.jobs ? "j" : "");
}

MetricsAccess decompile_metrics(std::string_view text) {
    MetricsAccess metrics;
    if (text.empty()) return metrics;
    for (const auto part : metrics_texts) {
        const auto end = std::min(text.find('\0'), text.size());
        metrics.*part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    metrics.pods = text.find('p') != text.npos;
    metrics.jobs = text.find('j') != text.npos;
    return metrics;
}

void decompile_sidecar(const CompiledSidecar& compiled, Policy& policy) {
    policy.sidecar.metrics_port = compiled.metrics_port;
    if (compiled.guard <= static_cast<std::uint8_t>(GuardMode::deny))
        policy.sidecar.guard = static_cast<GuardMode>(compiled.guard);
    policy.sidecar.web_port = compiled.web_port;
    if (compiled.web <= static_cast<std::uint8_t>(WebAccess::all)) policy.sidecar.web = static_cast<WebAccess>(compiled.web);
    policy.sidecar.backstop.assign(compiled.backstop, strnlen(compiled.backstop, sizeof compiled.backstop - 1));
    const auto count = std::min<std::size_t>(compiled.rule_count, most_dynamic_rules);
    for (std::size_t i = 0; i < count; ++i)
        if (auto rule = decompile_rule(compiled.rules[i])) policy.dynamic.push_back(std::move(*rule));
}

}  // namespace rdmaquota
