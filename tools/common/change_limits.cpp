#include "tools/common/change_limits.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/tenants.hpp"
#include "tools/common/upgrade/balance.hpp"

namespace rdmaquota {
namespace {

using Whose = LimitsWriter::Whose;
using Change = std::function<Result<void>(LimitsWriter&, Whose)>;

// In a directory that is one tenant's own there are no others.
bool is_for_everyone(const std::string& directory, const LimitKey& key) {
    return key.tenant.empty() && key.scope == Scope::process && !is_own_directory(directory);
}

// The tenant itself first.
Result<std::vector<TenantPlace>> places_of(const std::string& directory, const LimitKey& key) {
    const bool everyone = is_for_everyone(directory, key);
    auto named = find_tenant(directory, key.tenant);
    if (!named) return Error{named.error()};
    std::vector<TenantPlace> places{*named};
    if (everyone)
        places.push_back({std::string(everyone_key), here_path(directory, everyone_key)});
    // A tenant that the policy names is none of a template's.
    const auto running = NodePolicy::read(node_policy_path(directory));
    const auto policy = running ? running->decompile() : Policy();
    for (auto& place : tenant_places(directory))
        if (place.key != named->key && place.key != node_tenant && (everyone || (is_instance_of(place.key, named->key) && !policy.find(place.key))))
            places.push_back(std::move(place));
    return places;
}

Result<LimitsWriter> open_for_change(const std::string& here) {
    const auto path = limits_path(here);
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT)
        return Error{fmt::format("cannot change the limits in {}: {}{}", path, std::strerror(errno),
                                 ::geteuid() == 0 ? "" : "; run as root")};
    return LimitsWriter::open(path);
}

void fill_after(std::vector<LimitDone>& done, const LimitsSegment& limits) {
    for (auto& [key, before, after, in_force, reason] : done) {
        after = limits.configured(key.scope, key.device, key.resource);
        in_force = limits.limit(key.scope, key.device, key.resource);
        reason = limits.reason(key.scope, key.device, key.resource);
    }
}

// Those that are made later have these limits.
Result<void> change_for_new_tenants(const std::string& here, const Change& make) {
    auto writer = open_for_change(here);
    if (!writer) return Error{writer.error()};
    return make(*writer, Whose::tenant);
}

Result<std::vector<LimitDone>> change(const std::string& directory, const std::vector<LimitKey>& keys,
                                      const Change& make) {
    // No tenant is made meanwhile with the limits from before. Who may not lock may not change either, and is told so below.
    std::optional<PolicyLock> lock;
    if (!is_own_directory(directory) && ::access(directory.c_str(), W_OK) == 0) {
        auto taken = PolicyLock::take(node_policy_path(directory));
        if (!taken) return Error{taken.error()};
        lock.emplace(std::move(*taken));
    }
    const auto places = places_of(directory, keys.front());
    if (!places) return Error{places.error()};
    const auto whose = is_for_everyone(directory, keys.front()) ? Whose::everyone : Whose::tenant;
    std::vector<LimitDone> done;
    for (const auto& place : *places) {
        if (place.key == everyone_key) {
            if (auto kept = change_for_new_tenants(place.here, make); !kept) return Error{kept.error()};
            continue;
        }
        auto writer = open_for_change(place.here);
        if (!writer) return Error{writer.error()};
        const bool first = done.empty();
        if (first)
            for (const auto& key : keys)
                done.push_back({key, writer->limits().configured(key.scope, key.device, key.resource), 0, 0, {}});
        if (const auto made = make(*writer, whose); !made) return Error{made.error()};
    }
    if (const auto balanced = balance_with_old(directory); !balanced) return Error{balanced.error()};
    const auto limits = LimitsSegment::open(limits_path(places->front().here), LimitsSegment::Parts::all);
    if (!limits) return Error{limits.error()};
    fill_after(done, *limits);
    return done;
}

}  // namespace

Result<void> check_changeable(const std::string& directory, const LimitKey& key) {
    const auto place = find_tenant(directory, key.tenant);
    if (!place) return Error{place.error()};
    const auto writer = open_for_change(place->here);
    if (!writer) return Error{writer.error()};
    if (writer->limits().row(key.scope, key.device) || writer->limits().devices(key.scope).size() < most_limit_rows)
        return {};
    return Error{fmt::format("no room for limits of another device: tenant {} has limits for {} already",
                             writer->limits().tenant(), most_limit_rows)};
}

Result<std::vector<LimitDone>> set_limits(const std::string& directory, const std::vector<LimitChange>& changes) {
    std::vector<LimitKey> keys;
    std::vector<Setting> settings;
    for (const auto& [key, limit] : changes) {
        keys.push_back(key);
        settings.push_back({key.resource, limit});
    }
    return change(directory, keys, [&](LimitsWriter& writer, Whose whose) {
        return writer.set(keys.front().scope, keys.front().device, settings, whose);
    });
}

Result<std::vector<LimitDone>> unset_limits(const std::string& directory, const std::vector<LimitKey>& keys) {
    std::vector<Resource> resources;
    for (const auto& key : keys) resources.push_back(key.resource);
    return change(directory, keys, [&](LimitsWriter& writer, Whose whose) {
        return writer.unset(keys.front().scope, keys.front().device, resources, whose);
    });
}

}  // namespace rdmaquota
