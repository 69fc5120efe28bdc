// Puts a policy in force.
#include "tools/common/limits/reload.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "policy/file/policy_file.hpp"
#include "policy/printable.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/config.hpp"
#include "tools/common/tenants/container.hpp"
#include "tools/common/guard/guard_off.hpp"
#include "tools/common/tenants/ledger_mount.hpp"
#include "tools/common/limits/metrics_files.hpp"
#include "tools/common/limits/named_devices.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/limits/node_checks.hpp"
#include "tools/common/tenants/slurm_jobs.hpp"
#include "tools/common/tenants/template_tenants.hpp"

namespace rdmaquota {
namespace {

Result<void> check_rows(const std::string& path, const ScopeLimits& scope) {
    if (scope.size() <= most_limit_rows) return {};
    return Error{
        fmt::format("{}: names {} devices in one table; at most {} are possible", path, scope.size(), most_limit_rows)};
}

// The users that the template is for as far as NSS lists them, and those that have a tenant of it already.
std::set<std::string> instances_of(const std::string& directory, const Policy& policy, const TenantPolicy& from) {
    std::set<std::string> keys;
    for (const auto& place : tenant_places(directory))
        if (is_instance_of(place.key, from.name) && !policy.find(place.key)) keys.insert(place.key);
    for (const auto& match : from.matches) {
        if (!match.cgroup.empty() || !match.unit.empty()) continue;
        for (const auto uid : enumerable_users(match)) keys.insert(instance_of_user(from.name, uid));
    }
    return keys;
}

// Writes what a policy says into the directory, tenant after tenant, and last who is in which.
class Publisher {
public:
    Publisher(const std::string& directory, const Policy& policy)
        : directory_(directory), policy_(policy), names_(name_lookup()) {}

    Result<std::string> run(const PolicyLock& lock) {
        if (!policy_.node.empty())
            if (const auto put = put_limits(directory_, node_tenant, limits_of_node()); !put) return Error{put.error()};
        if (const auto put = put_limits(directory_, everyone_key, limits_of_everyone()); !put) return Error{put.error()};
        // Those above first: what is new below them begins without a share.
        std::vector<const TenantPolicy*> tenants;
        for (const auto& tenant : policy_.tenants) tenants.push_back(&tenant);
        std::stable_sort(tenants.begin(), tenants.end(), [](const TenantPolicy* a, const TenantPolicy* b) {
            return std::count(a->name.begin(), a->name.end(), '/') < std::count(b->name.begin(), b->name.end(), '/');
        });
        for (const auto* tenant : tenants)
            if (const auto put = publish(*tenant); !put) return Error{put.error()};
        const auto published = publish_node_policy(lock, node_policy_path(directory_), policy_, names_);
        if (!published) return Error{published.error()};
        (void)remove_ended(directory_, policy_);
        return aside_;
    }

private:
    TenantLimits limits_of_node() const {
        TenantPolicy root;
        root.name = node_tenant;
        root.limits[index(Scope::tenant)] = policy_.node;
        auto limits = limits_of(policy_, root);
        limits.for_everyone.clear();
        return limits;
    }

    TenantLimits limits_of_everyone() const {
        TenantLimits limits;
        limits.tenant = everyone_key;
        limits.limits[index(Scope::process)] = policy_.process;
        return limits;
    }

    Result<void> publish(const TenantPolicy& tenant) {
        if (tenant.is_override) return put_override(directory_, policy_, tenant, names_);
        const bool inner = is_inner(policy_, tenant.name);
        if (!is_template(tenant.name))
            if (const auto put = put_limits_above(directory_, policy_, tenant.name); !put) return put;
        const auto mode = inner ? 0755 : directory_mode_of(tenant);
        if (const auto put = put_limits(directory_, tenant.name, limits_of(policy_, tenant), mode); !put) return put;
        if (is_template(tenant.name)) return inner ? publish_inner_instances(tenant) : publish_instances(tenant);
        const TenantPlace place{tenant.name, here_path(directory_, tenant.name)};
        if (inner) {
            remove_unused_ledger(place);
            if (place.has_ledger()) return {};  // of other members, until it is unused
        } else if (const auto made = ledger_of(place, access_of(tenant, names_)); !made) {
            return made;
        }
        return open_directory(directory_, tenant.name, mode);
    }

    Result<void> publish_instances(const TenantPolicy& from) {
        for (const auto& key : instances_of(directory_, policy_, from))
            if (auto made = make_instance(directory_, policy_, from, key, access_of_instance(from, key, names_)); !made)
                return made;
        return {};
    }

    // Of those that are there; the others come with the first tenant below them.
    Result<void> publish_inner_instances(const TenantPolicy& from) {
        for (const auto& place : tenant_places(directory_)) {
            if (template_of(policy_, place.key) != &from) continue;
            if (auto put = put_instance_limits(directory_, policy_, from, place.key); !put) return put;
            remove_unused_ledger(place);
        }
        return {};
    }

    Result<void> ledger_of(const TenantPlace& place, const LedgerAccess& access) {
        const auto aside = put_ledger(place, access);
        if (!aside) return Error{aside.error()};
        if (!aside->empty()) aside_ = *aside;
        return {};
    }

    const std::string& directory_;
    const Policy& policy_;
    NameLookup names_;
    std::string aside_;
};

// Transient tenants stay until they are removed or the node starts again.
void keep_transient(const std::string& directory, Policy& policy) {
    const auto running = NodePolicy::read(node_policy_path(directory));
    if (!running) return;
    for (auto& tenant : running->decompile().tenants) {
        if (!tenant.transient || policy.find(tenant.name)) continue;
        fill_limits_in_file(directory, tenant);
        policy.tenants.push_back(std::move(tenant));
    }
}

// The limits that `set` changed and did not save, which a reload takes back: "2 limits that were set ...: user/bob qp on rxe0, ...".
std::string taken_back(const std::string& directory) {
    constexpr std::size_t most_named = 3;
    std::vector<std::string> names;
    for (const auto& place : tenant_places(directory)) {
        const auto limits = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all);
        if (!limits) continue;
        for (const auto scope : {Scope::process, Scope::tenant})
            limits->for_each_row(scope, [&](const std::string& device, const LimitsRow&, const OriginRow& origins) {
                for (const auto& row : limit_table)
                    if (const auto& origin = origins.of[index(row.id)];
                        (own_of(origin) & own_by_set) != 0 && load(origin.configured) != load(origin.file))
                        names.push_back(fmt::format("{} {} on {}", printable(limits->tenant()), row.name, printable(device)));
            });
    }
    if (names.empty()) return {};
    const auto count = names.size();
    names.resize(std::min(count, most_named));
    return fmt::format("{} set without --persist {} as in the file again: {}{}",
                       count == 1 ? "a limit that was" : fmt::format("{} limits that were", count), count == 1 ? "is" : "are",
                       fmt::join(names, ", "), count > most_named ? ", ..." : "");
}

// What containers were bound to stays, where the tenant is still there, until their cgroups are gone.
void keep_bindings(const std::string& directory, Policy& policy) {
    const auto running = NodePolicy::read(node_policy_path(directory));
    if (!running) return;
    for (const auto& tenant : running->decompile().tenants) {
        auto* now = policy.find(tenant.name);
        if (now == nullptr || now->transient || !check_for_container(policy, tenant.name)) continue;
        std::copy_if(tenant.matches.begin(), tenant.matches.end(), std::inserter(now->matches, now->matches.begin()),
                     [](const Match& match) { return match.bound; });
    }
    (void)erase_ended_bindings(policy);
}

}  // namespace

std::string default_policy_file() { return fmt::format("{}/rdmaquota.toml", config::policy_dir); }

Result<Policy> load_policy(const std::string& path, Distrusted distrusted) {
    auto policy = read_policy(path, distrusted);
    if (!policy) return policy;
    for (const auto* scope : {&policy->process, &policy->node})
        if (auto fits = check_rows(path, *scope); !fits) return Error{fits.error()};
    for (const auto& tenant : policy->tenants)
        for (const auto& scope : tenant.limits)
            if (auto fits = check_rows(path, scope); !fits) return Error{fits.error()};
    return policy;
}

Result<std::string> publish_policy(const PolicyLock& lock, const std::string& directory, const Policy& policy) {
    return Publisher(directory, policy).run(lock);
}

// Everything that can fail comes before the first publication, except for a full file system. All limits are the
// configured ones then, but for what other tenants have of them.
Result<Reloaded> reload_policy(const std::string& file, const std::string& directory, When when) {
    if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT)
        return Error{fmt::format("there is no policy file {}: copy {} there, or name another: rdmaquota reload FILE",
                                 file, config::example_policy)};
    if (const auto usable = load_policy(file); !usable) return Error{usable.error()};
    if (is_own_directory(directory))
        return Error{fmt::format("{} belongs to one tenant; a policy is put in force in the node's directory", directory)};
    if (const auto made = make_directory(directory); !made) return Error{made.error()};
    if (directory == system_directory)
        if (const auto mounted = mount_node(directory); !mounted) return Error{mounted.error()};
    const auto lock = PolicyLock::take(node_policy_path(directory));
    if (!lock) return Error{lock.error()};
    auto policy = load_policy(file);  // again, since `set --persist` changes it under the lock
    if (!policy) return Error{policy.error()};
    if (const auto group = missing_backstop(*policy); !group.empty()) {
        auto missing = fmt::format("backstop names the cgroup {}, which does not exist", printable(group));
        if (when == When::now) return Error{fmt::format("{}: {}; make it first, or take backstop out", file, missing)};
        policy->warnings.push_back(missing + " yet");
    }
    if (const auto usable = check_metrics_files(policy->sidecar.metrics); !usable) {
        if (when == When::now) return Error{fmt::format("{}: {}", file, usable.error())};
        policy->warnings.push_back(usable.error());
    }
    for (auto& warning : warnings_of_node(*policy)) policy->warnings.push_back(std::move(warning));
    resolve_overrides(*policy, name_lookup());
    keep_transient(directory, *policy);
    keep_bindings(directory, *policy);
    if (directory == system_directory)
        if (auto mounted = mount_second(directory, second_directory); !mounted)
            policy->warnings.push_back(mounted.error());
    if (auto lost = taken_back(directory); !lost.empty()) policy->warnings.push_back(std::move(lost));
    ::unlink(guard_off_path(directory).c_str());
    const auto aside = publish_policy(*lock, directory, *policy);
    if (!aside) return Error{aside.error()};
    if (const auto put = put_slurm(directory, policy->slurm); !put) return Error{put.error()};
    if (const auto dropped = drop_unnamed_devices(directory); !dropped) return Error{dropped.error()};
    return Reloaded{policy->mode, *aside, policy->warnings};
}

}  // namespace rdmaquota
