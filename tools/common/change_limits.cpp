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

std::uint64_t value_of(const LimitsSegment& limits, const LimitKey& key, LimitPart part) {
    if (part == LimitPart::soft) return limits.soft(key.device, key.resource);
    if (part == LimitPart::guarantee) return limits.guarantee(key.device, key.resource);
    return limits.configured(key.scope, key.device, key.resource);
}

void fill_after(std::vector<LimitDone>& done, const LimitsSegment& limits) {
    for (auto& [key, before, after, in_force, reason, part] : done) {
        after = in_force = value_of(limits, key, part);
        if (part != LimitPart::limit) continue;
        in_force = limits.limit(key.scope, key.device, key.resource);
        reason = limits.reason(key.scope, key.device, key.resource);
    }
}

// Soft limits are for those who have processes, guarantees for one tenant.
Result<void> check_part(const std::string& directory, const LimitKey& key, LimitPart part) {
    if (part == LimitPart::limit) return {};
    if (key.scope == Scope::process || key.tenant == node_tenant)
        return Error{fmt::format("a {} is possible for a tenant as a whole only", name(part))};
    if (part == LimitPart::guarantee && is_template(key.tenant))
        return Error{"a template has no guarantees; name one of its tenants"};
    const auto place = find_tenant(directory, key.tenant);
    if (part == LimitPart::soft && place && !place->has_ledger() && !is_template(place->key) &&
        place->key != default_tenant)
        return Error{fmt::format("tenant '{}' has no processes, so it has no soft limits", key.tenant)};
    if (part == LimitPart::soft && key.device == total_device)
        return Error{"there is no soft limit for the sum over devices"};
    return {};
}

// Those that are made later have these limits.
Result<void> change_for_new_tenants(const std::string& here, const Change& make) {
    auto writer = open_for_change(here);
    if (!writer) return Error{writer.error()};
    return make(*writer, Whose::tenant);
}

Result<std::vector<LimitDone>> change(const std::string& directory, const std::vector<LimitKey>& keys, LimitPart part,
                                      const Change& make) {
    if (const auto possible = check_part(directory, keys.front(), part); !possible) return Error{possible.error()};
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
                done.push_back({key, value_of(writer->limits(), key, part), 0, 0, {}, part});
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

void read_again(const std::string& directory, std::vector<LimitDone>& done) {
    const auto place = find_tenant(directory, done.front().key.tenant);
    const auto limits = LimitsSegment::open(limits_path(place ? place->here : directory), LimitsSegment::Parts::all);
    if (limits) fill_after(done, *limits);
}

Result<std::vector<LimitDone>> set_limits(const std::string& directory, const std::vector<LimitChange>& changes) {
    std::vector<LimitKey> keys;
    std::vector<Setting> settings;
    const auto part = changes.front().part;
    for (const auto& [key, limit, ignored] : changes) {
        if (part == LimitPart::guarantee && limit == unlimited) return Error{"a guarantee must be an amount, not max"};
        keys.push_back(key);
        settings.push_back({key.resource, limit});
    }
    return change(directory, keys, part, [&](LimitsWriter& writer, Whose whose) {
        if (part != LimitPart::limit) return writer.set_part(part, keys.front().device, settings);
        return writer.set(keys.front().scope, keys.front().device, settings, whose);
    });
}

Result<std::vector<LimitDone>> unset_limits(const std::string& directory, const std::vector<LimitKey>& keys,
                                              LimitPart part) {
    std::vector<Resource> resources;
    for (const auto& key : keys) resources.push_back(key.resource);
    return change(directory, keys, part, [&](LimitsWriter& writer, Whose whose) {
        if (part != LimitPart::limit) return writer.unset_part(part, keys.front().device, resources);
        return writer.unset(keys.front().scope, keys.front().device, resources, whose);
    });
}

}  // namespace rdmaquota
