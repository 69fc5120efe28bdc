#include "tools/common/tenants/transient.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "shm/policy/node_policy.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/tenants/container.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/template_tenants.hpp"

namespace rdmaquota {
namespace {

Result<void> check_leaf(const Policy& policy, std::string_view name) {
    if (!is_inner(policy, name)) return {};
    return Error{fmt::format("'{}' has tenants below it, so no process can be in it", printable(name))};
}

Result<void> check_free(const Policy& policy, const std::string& name) {
    if (const auto* there = policy.find(name))
        return Error{fmt::format("there is a tenant '{}' already{}", name,
                                 there->transient ? "; remove it first" : ", from the policy file")};
    for (auto parent = parent_of(name); parent != node_tenant; parent = parent_of(parent)) {
        const auto* named = policy.find(parent);
        const auto* above = named != nullptr ? named : template_of(policy, parent);
        if (above != nullptr && !above->matches.empty())
            return Error{fmt::format("'{}' cannot have tenants below it: processes are in it", parent)};
    }
    // Where a user's tenant of that name is, which people see by the user's name, `set` could not tell the two apart.
    if (const auto* from = template_with(policy, name); from != nullptr && from->name.find("{user}") != std::string::npos)
        return Error{fmt::format("'{}' is what a tenant of the template '{}' may be called; choose another name", name, from->name)};
    return check_leaf(policy, name);
}

Result<void> check_names(const TenantPolicy& tenant) {
    const auto check = [](const std::string& name) -> Result<void> {
        const bool group = name.starts_with('@');
        if (name.empty() || name == "*" || is_known_name(name)) return {};
        return Error{fmt::format("there is no {} '{}'", group ? "group" : "user", printable(group ? name.substr(1) : name))};
    };
    for (const auto& match : tenant.matches) {
        if (auto known = check(match.user); !known) return known;
        if (!match.group.empty())
            if (auto known = check("@" + match.group); !known) return known;
        for (const auto& member : match.members)
            if (auto known = check(member); !known) return known;
    }
    return {};
}

// A name that was used before gets a fresh directory. What still lives of the old one keeps the name with a number.
Result<void> make_room(const std::string& directory, const std::string& name) {
    const TenantPlace old{name, here_path(directory, name)};
    const auto path = tenant_directory(directory, name);
    if (::access(path.c_str(), F_OK) != 0) return {};
    if (!has_owners(old)) {
        remove_tenant_files(directory, old);
        return {};
    }
    for (int number = 1; number < 10'000; ++number) {
        const auto aside = fmt::format("{}{}{}", path, ended_mark, number);
        if (::access(aside.c_str(), F_OK) == 0) continue;
        if (std::rename(path.c_str(), aside.c_str()) == 0) return {};
        return Error{fmt::format("cannot rename {}: {}", path, std::strerror(errno))};
    }
    return Error{fmt::format("too many ended tenants named '{}' are still in use", name)};
}

// The lock of the policy in force, and that policy.
struct Running {
    PolicyLock lock;
    Policy policy;
};

Result<Running> open_running(const std::string& directory,
                             std::chrono::milliseconds patience = PolicyLock::default_patience) {
    if (is_own_directory(directory))
        return Error{fmt::format("{} belongs to one tenant; tenants are added in the node's directory", directory)};
    auto lock = PolicyLock::take(node_policy_path(directory), patience);
    if (!lock) return Error{lock.error()};
    auto policy = running_policy(directory);
    if (!policy) return Error{policy.error()};
    (void)erase_ended_bindings(*policy);
    return Running{std::move(*lock), std::move(*policy)};
}

// So that `unset` of what is set for all processes now has the file's limit here, too.
Result<void> rebase_everyone(const std::string& directory, const std::string& tenant) {
    const auto everyone = LimitsSegment::open(limits_path(here_path(directory, everyone_key)), LimitsSegment::Parts::all);
    if (!everyone) return {};
    auto writer = LimitsWriter::open(limits_path(here_path(directory, tenant)));
    if (!writer) return Error{writer.error()};
    writer->rebase_everyone(*everyone);
    return {};
}

}  // namespace

Result<void> add_transient(const std::string& directory, TenantPolicy tenant, std::chrono::milliseconds patience) {
    tenant.transient = true;
    if (auto known = check_names(tenant); !known) return known;
    auto running = open_running(directory, patience);
    if (!running) return Error{running.error()};
    auto& [lock, policy] = *running;
    if (auto is_free = check_free(policy, tenant.name); !is_free) return is_free;
    if (auto room = make_room(directory, tenant.name); !room) return room;
    (void)remove_ended(directory, policy);
    const auto names = name_lookup();
    if (auto put = put_limits_above(directory, policy, tenant.name); !put) return put;
    if (auto put = put_limits(directory, tenant.name, limits_of(policy, tenant), directory_mode_of(tenant)); !put)
        return put;
    if (auto based = rebase_everyone(directory, tenant.name); !based) return based;
    const TenantPlace place{tenant.name, here_path(directory, tenant.name)};
    if (auto put = put_ledger(place, access_of(tenant, names)); !put) return Error{put.error()};
    policy.tenants.push_back(std::move(tenant));
    return publish_node_policy(lock, node_policy_path(directory), policy, names);
}

Result<void> make_instance_of_key(const std::string& directory, std::string_view key) {
    auto running = open_running(directory);
    if (!running) return Error{running.error()};
    const auto here = here_path(directory, key);
    if (::access(limits_path(here).c_str(), F_OK) == 0 && TenantPlace{"", here}.has_ledger()) return {};
    const auto& policy = running->policy;
    const auto* from = template_of(policy, key);
    if (from == nullptr) return Error{fmt::format("no template has a tenant '{}'", printable(key))};
    if (auto leaf = check_leaf(policy, key); !leaf) return leaf;
    return make_instance(directory, policy, *from, key, access_of_instance(*from, key, name_lookup()));
}

Result<void> bind_cgroup(const std::string& directory, std::string_view name, const std::string& cgroup) {
    auto running = open_running(directory);
    if (!running) return Error{running.error()};
    auto& [lock, policy] = *running;
    if (auto usable = check_for_container(policy, name); !usable) return usable;
    if (auto valid = check_container_cgroup(cgroup); !valid) return valid;
    for (auto& tenant : policy.tenants)
        std::erase_if(tenant.matches, [&](const Match& match) { return match.bound && match.cgroup == cgroup; });
    auto& matches = policy.find(name)->matches;
    Match match;
    match.cgroup = cgroup;
    match.bound = true;
    matches.insert(matches.begin(), std::move(match));
    return publish_node_policy(lock, node_policy_path(directory), policy, name_lookup());
}

void drop_ended_bindings(const std::string& directory, std::chrono::milliseconds patience) {
    const auto lock = PolicyLock::take(node_policy_path(directory), patience);
    if (!lock) return;
    auto policy = running_policy(directory);
    if (policy && erase_ended_bindings(*policy))
        (void)publish_node_policy(*lock, node_policy_path(directory), *policy, name_lookup());
}

Result<bool> remove_transient(const std::string& directory, std::string_view name, std::chrono::milliseconds patience) {
    auto running = open_running(directory, patience);
    if (!running) return Error{running.error()};
    auto& [lock, policy] = *running;
    const auto* there = policy.find(name);
    if (there == nullptr) return Error{fmt::format("there is no tenant '{}'", printable(name))};
    if (!there->transient)
        return Error{fmt::format("tenant '{}' comes from the policy file; take it out there and run 'rdmaquota reload'",
                                 name)};
    std::erase_if(policy.tenants, [&](const TenantPolicy& tenant) { return tenant.name == name; });
    if (auto published = publish_node_policy(lock, node_policy_path(directory), policy, name_lookup()); !published)
        return Error{published.error()};
    const auto in_use = remove_ended(directory, policy);
    return std::find(in_use.begin(), in_use.end(), name) == in_use.end();
}

}  // namespace rdmaquota
