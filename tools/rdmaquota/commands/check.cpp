// rdmaquota check: whether a policy file is right, and what it means.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/match_text.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/limits/metrics_files.hpp"
#include "tools/common/limits/node_checks.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {
namespace {

std::string limits_text(const LimitRow& row, std::span<const ResourceInfo> which = limit_table) {
    std::string text;
    for (const auto& resource : which)
        if (const auto limit = row[index(resource.id)]; limit != unset)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", resource.name, format_amount(resource.id, limit));
    return text.empty() ? "no limits" : text;
}

std::string device_words(const std::string& device) {
    if (device == any_device) return "each device";
    return device == total_device ? "all devices together" : device;
}

void add_scope(Table& table, const std::string& who, const ScopeLimits& scope) {
    for (const auto& entry : scope) table.add({"  " + who, device_words(entry.device), limits_text(entry.limits)});
    if (scope.empty()) table.add({"  " + who, "", "no limits"});
}

// "soft qp 30", "burst commands_per_s 4000"
void add_part(Table& table, const std::string& who, std::string_view part, const ScopeLimits& scope,
              std::span<const ResourceInfo> which = limit_table) {
    for (const auto& entry : scope)
        if (std::any_of(which.begin(), which.end(), [&](const auto& row) { return entry.limits[index(row.id)] != unset; }))
            table.add({"  " + who, device_words(entry.device), fmt::format("{} {}", part, limits_text(entry.limits, which))});
}

void add_tenant(Table& table, const TenantPolicy& tenant) {
    const auto who = (is_template(tenant.name) ? "template " : "tenant ") + tenant.name;
    if (tenant.is_override) table.add({"  " + who, "", "overrides its template"});
    for (const auto& match : tenant.matches) table.add({"  " + who, "", printable("match " + match_words(match))});
    if (tenant.mode) table.add({"  " + who, "", "mode " + std::string(name(*tenant.mode))});
    if (tenant.weight) table.add({"  " + who, "", fmt::format("weight {}", *tenant.weight)});
    if (tenant.deny_errno) table.add({"  " + who, "", "denial " + std::string(deny_errno_name(*tenant.deny_errno))});
    if (tenant.max_delay_ms)
        table.add({"  " + who, "", fmt::format("rates delay a call by up to {}", seconds_words(*tenant.max_delay_ms * std::uint64_t{1'000'000}))});
    add_scope(table, who, tenant.limits[index(Scope::tenant)]);
    add_part(table, who, "soft", tenant.softs, resource_table);
    add_part(table, who, "burst", tenant.softs, rate_table);
    add_part(table, who, "guaranteed", tenant.guarantees);
    const auto& process = tenant.limits[index(Scope::process)];
    if (!process.empty()) add_scope(table, "each process of " + who, process);
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

// With its number, by which denials name it.
std::string rule_holder(std::size_t number, const DynamicRule& rule) {
    const auto tenant = rule.tenant == "*" ? std::string("each tenant") : "tenant " + rule.tenant;
    const auto head = fmt::format("  rule {} for ", number);
    if (rule.scope == Scope::tenant) return head + tenant;
    return head + (rule.tenant == "*" ? "each process" : "each process of " + tenant);
}

std::string metrics_words(const Sidecar& sidecar) {
    const auto& metrics = sidecar.metrics;
    const bool six = metrics.address.find(':') != metrics.address.npos;
    return fmt::format("{}://{}{}{}:{}/metrics{}{}{}{}", metrics.has_tls() ? "https" : "http", six ? "[" : "", metrics.address, six ? "]" : "",
                       sidecar.metrics_port, metrics.token.empty() ? "" : ", with a token",
                       metrics.client_ca.empty() ? "" : ", with a client's certificate", metrics.pods ? ", by pod" : "",
                       metrics.jobs ? ", by job" : "");
}

void add_sidecar(Table& table, const Policy& policy) {
    if (!policy.sidecar.backstop.empty())
        table.add({"  backstop", "", "rdma.max of the cgroup " + printable(policy.sidecar.backstop)});
    for (std::size_t i = 0; i < policy.dynamic.size(); ++i)
        table.add({rule_holder(i + 1, policy.dynamic[i]), device_words(policy.dynamic[i].device),
                   rule_words(policy.dynamic[i])});
    if (policy.sidecar.guard != GuardMode::off) table.add({"  guard", "", std::string(name(policy.sidecar.guard))});
    if (policy.sidecar.metrics_port != 0)
        table.add({"  metrics", "", metrics_words(policy.sidecar)});
    if (policy.sidecar.web_port != 0)
        table.add({"  web", "", fmt::format("http://127.0.0.1:{}/, {}", policy.sidecar.web_port, name(policy.sidecar.web))});
}

void add_slurm(Table& table, const SlurmPolicy& slurm) {
    add_scope(table, "each Slurm job", slurm.job);
    const auto add = [&](const char* kind, const auto& scopes) {
        for (const auto& [name, scope] : scopes) add_scope(table, printable(fmt::format("Slurm {} {}", kind, name)), scope);
    };
    add("partition", slurm.partitions);
    add("account", slurm.accounts);
    add("QOS", slurm.qos);
}

void print_policy(const Policy& policy) {
    Table table({"  mode", "", std::string(name(policy.mode))}, {Align::left, Align::left, Align::left});
    table.add({"  denial", "", std::string(deny_errno_name(policy.deny_errno))});
    table.add({"  on_unavailable", "", std::string(name(policy.on_unavailable))});
    if (policy.clamp_device_attr) table.add({"  device attributes", "", "no more than the quota leaves"});
    table.add({"  log", "", printable(log_words(policy))});
    add_scope(table, "each process", policy.process);
    if (!policy.node.empty()) add_scope(table, "the node", policy.node);
    for (const auto& tenant : policy.tenants) add_tenant(table, tenant);
    if (policy.slurm) add_slurm(table, *policy.slurm);
    add_sidecar(table, policy);
    table.print({});
}

struct Options {
    std::string file, user, cgroup;
};

// The policy's verdict about a process, by the policy compiled as `reload` would.
Result<NodePolicy> compiled(const Policy& policy) {
    char directory[] = "/tmp/rdmaquota-check.XXXXXX";
    if (::mkdtemp(directory) == nullptr) return Error{fmt::format("cannot create {}: {}", directory, std::strerror(errno))};
    const auto path = std::string(directory) + "/policy";
    auto result = [&]() -> Result<NodePolicy> {
        const auto lock = PolicyLock::take(path);
        if (!lock) return Error{lock.error()};
        if (const auto put = publish_node_policy(*lock, path, policy, name_lookup()); !put) return Error{put.error()};
        return NodePolicy::read(path);
    }();
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    return result;
}

int try_subject(const Policy& policy, const Options& options) {
    const auto node = compiled(policy);
    if (!node) return failed(node.error());
    std::optional<UserIds> ids;
    if (!options.user.empty()) ids = ids_of_user(options.user);
    if (!options.user.empty() && !ids) return failed(fmt::format("there is no user '{}'", options.user));
    Subject subject;
    if (ids) subject = {ids->user, ids->group, ids->groups, {}};
    subject.cgroup = options.cgroup;
    const auto verdict = node->find(subject);
    const bool may_match = verdict.hidden && options.cgroup.empty();
    fmt::print("{}{}{}: tenant {}, {}{}\n", options.user.empty() ? "a process" : "user " + options.user,
               options.cgroup.empty() ? "" : " in cgroup ", printable(options.cgroup), printable(shown_name(verdict.tenant)),
               printable(match_words(policy, verdict)),
               may_match ? "; an entry before it asks for a cgroup or a unit: add --cgroup PATH" : "");
    return status_done;
}

bool denies_with(const Policy& policy, int error) {
    return policy.deny_errno == error ||
           std::any_of(policy.tenants.begin(), policy.tenants.end(), [&](auto& tenant) { return tenant.deny_errno == error; });
}

int check(const Options& options) {
    const auto policy = load_policy(options.file, Distrusted::warn);
    if (!policy) return failed(policy.error());
    const auto fragments = policy_fragments(options.file);
    if (!fragments) return failed(fragments.error());
    for (const auto& warning : policy->warnings) warn("warning: " + warning);
    for (const auto& warning : warnings_of_node(*policy)) warn("warning: " + warning);
    if (const auto group = missing_backstop(*policy); !group.empty())
        warn(fmt::format("warning: backstop names the cgroup {}, which does not exist on this node", printable(group)));
    if (denies_with(*policy, EAGAIN))
        warn("remark: deny_errno = \"EAGAIN\": registrations of memory are denied with EDQUOT, since programs try them again "
             "for as long as they get EAGAIN");
    if (!options.user.empty() || !options.cgroup.empty()) return try_subject(*policy, options);
    if (const auto usable = check_metrics_files(policy->sidecar.metrics); !usable) return failed(usable.error());
    fmt::print("{}: ok\n", printable(options.file));
    for (const auto& fragment : fragments.value()) fmt::print("{}: ok, merged\n", printable(fragment));

    print_policy(policy.value());
    return status_done;
}

}  // namespace

void add_check(CommandLine& line) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("check", "Check a policy file and say what it means; changes nothing");
    command.word("FILE", options->file, "Policy file; the files conf.d/*.toml beside it are merged");
    command.option("--as", "USER", options->user, "Say in which tenant a process of this user would be");
    command.option("--cgroup", "PATH", options->cgroup, "Likewise for a process in this cgroup, with or without --as");
    command.action([options] { return check(*options); });
}

}  // namespace rdmaquota
