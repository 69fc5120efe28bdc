// rdmaquota check: whether a policy file is right, and what it means.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

std::string limits_of(const LimitRow& row) {
    std::string text;
    for (const auto& resource : resource_table)
        if (const auto limit = row[index(resource.id)]; limit != unset)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", resource.name, format_amount(resource.id, limit));
    return text.empty() ? "no limits" : text;
}

std::string device_words(const std::string& device) {
    if (device == any_device) return "each device";
    return device == total_device ? "all devices together" : device;
}

void add_scope(Table& table, const std::string& who, const ScopeLimits& scope) {
    for (const auto& entry : scope) table.add({"  " + who, device_words(entry.device), limits_of(entry.limits)});
    if (scope.empty()) table.add({"  " + who, "", "no limits"});
}

std::string log_words(const Policy& policy) {
    const auto target = policy.log_target == LogTarget::file ? policy.log_file : std::string(name(policy.log_target));
    return fmt::format("{} and worse to {}", name(policy.log_level), target);
}

std::string capacity_words(const DynamicRule& rule) {
    if (rule.of == CapacityOf::amount) return format_amount(rule.watch, rule.capacity);
    if (rule.of == CapacityOf::node) return "the node's memory";
    return rule.of == CapacityOf::device ? "the device's maximum" : "the tenant's limit";
}

std::string rule_words(const DynamicRule& rule) {
    const bool tightens = rule.tightens();
    return fmt::format("{} {} % of it while {} is {} {} % of {}, and until {} %, but at least {}",
                       info(rule.limit).name, rule.factor, info(rule.watch).name, tightens ? "above" : "below",
                       tightens ? rule.above : rule.below, capacity_words(rule), tightens ? rule.below : rule.above,
                       format_amount(rule.limit, rule.floor));
}

void add_sidecar(Table& table, const Policy& policy) {
    if (!policy.sidecar.backstop.empty())
        table.add({"  backstop", "", "rdma.max of the cgroup " + printable(policy.sidecar.backstop)});
    for (const auto& rule : policy.dynamic)
        table.add({rule.scope == Scope::process ? "  rule for each process" : "  rule for tenant default",
                   device_words(rule.device), rule_words(rule)});
    if (policy.sidecar.metrics_port != 0)
        table.add({"  metrics", "", fmt::format("http://127.0.0.1:{}/metrics", policy.sidecar.metrics_port)});
}

void print_policy(const Policy& policy) {
    Table table({"  mode", "", std::string(name(policy.mode))}, {Align::left, Align::left, Align::left});
    table.add({"  denial", "", std::string(deny_errno_name(policy.deny_errno))});
    table.add({"  on_unavailable", "", std::string(name(policy.on_unavailable))});
    if (policy.clamp_device_attr) table.add({"  device attributes", "", "no more than the quota leaves"});
    table.add({"  log", "", printable(log_words(policy))});
    add_scope(table, "each process", policy.process);
    add_scope(table, "tenant default", policy.tenant);
    add_sidecar(table, policy);
    table.print({});
}

int check(const std::string& file) {
    const auto policy = load_policy(file);
    if (!policy) return failed(policy.error());
    const auto fragments = policy_fragments(file);
    if (!fragments) return failed(fragments.error());
    for (const auto& warning : policy->warnings) warn("warning: " + warning);
    fmt::print("{}: ok\n", printable(file));
    for (const auto& fragment : fragments.value()) fmt::print("{}: ok, merged\n", printable(fragment));

    print_policy(policy.value());
    return status_done;
}

}  // namespace

void add_check(CommandLine& line) {
    const auto file = std::make_shared<std::string>();
    auto command = line.command("check", "Check a policy file and say what it means; changes nothing");
    command.word("FILE", *file, "Policy file; the files conf.d/*.toml beside it are merged");
    command.action([file] { return check(*file); });
}

}  // namespace rdmaquota
