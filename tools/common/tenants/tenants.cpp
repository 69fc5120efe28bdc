#include "tools/common/tenants/tenants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"

#include "tools/common/text/directory_names.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_named = 8;  // in an error

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Error unknown(std::string_view name, const std::vector<TenantPlace>& places) {
    if (name == node_tenant)
        return {"the running policy has no limits of the node; write [node.\"*\"] into the policy file, and run 'rdmaquota reload'"};
    std::string names;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto limits = LimitsSegment::open(limits_path(places[i].here));
        const auto shown = limits ? limits->tenant() : places[i].key;
        if (shown.ends_with("/" + std::string(name)))
            return {fmt::format("there is no tenant '{}'; did you mean '{}'?", printable(name), printable(shown))};
        if (i < most_named) names += (i == 0 ? "" : ", ") + printable(shown);
    }
    return {fmt::format("there is no tenant '{}'{}{}{}", printable(name), names.empty() ? "" : "; there are ", names,
                        places.size() > most_named ? ", ..." : "")};
}

}  // namespace

bool TenantPlace::has_ledger() const { return exists(ledger_path(here)); }

bool TenantPlace::is_hidden() const { return !exists(ledger_path(here)) && errno == EACCES; }

bool is_own_directory(const std::string& directory) { return exists(limits_path(directory)); }

std::vector<TenantPlace> tenant_places(const std::string& directory) {
    if (is_own_directory(directory)) return {{"", directory}};
    std::vector<TenantPlace> places;
    const auto tenants = tenants_directory(directory);
    for (auto& key : directory_names(tenants)) {
        const auto here = tenants + "/" + key + "/here";
        std::replace(key.begin(), key.end(), '+', '/');
        if (key != everyone_key && exists(limits_path(here))) places.push_back({std::move(key), here});
    }
    const auto rank = [](const TenantPlace& place) { return std::pair(place.key != default_tenant, std::string_view(place.key)); };
    std::sort(places.begin(), places.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return places;
}

Result<TenantPlace> find_tenant(const std::string& directory, std::string_view name) {
    if (is_own_directory(directory)) {
        const auto limits = LimitsSegment::open(limits_path(directory));
        if (name.empty() || (limits && limits->tenant() == name)) return TenantPlace{"", directory};
        return Error{fmt::format("{} belongs to one tenant, which is not '{}'; leave the name out", directory,
                                 printable(name))};
    }
    const auto key = name.empty() ? default_tenant : name;
    const auto here = here_path(directory, key);
    const bool is_key = key.find("..") == key.npos && key.find('+') == key.npos && key != everyone_key;
    if (is_key && (exists(limits_path(here)) || key == default_tenant)) return TenantPlace{std::string(key), here};
    const auto places = tenant_places(directory);
    for (const auto& place : places)
        if (const auto limits = LimitsSegment::open(limits_path(place.here)); limits && limits->tenant() == key)
            return place;
    return unknown(key, places);
}

bool is_instance_of(std::string_view key, std::string_view template_name) {
    return is_template(template_name) && !is_template(key) && key.find(ended_mark) == key.npos &&
           is_instance(key, template_name);
}

const TenantPolicy* template_with(const Policy& policy, std::string_view key) {
    const auto found = std::find_if(policy.tenants.begin(), policy.tenants.end(),
                                    [&](const TenantPolicy& tenant) { return is_instance_of(key, tenant.name); });
    return found == policy.tenants.end() ? nullptr : &*found;
}

const TenantPolicy* template_of(const Policy& policy, std::string_view key) {
    return policy.find(key) ? nullptr : template_with(policy, key);
}

bool is_inner(const Policy& policy, std::string_view key) {
    const auto same = [&](std::string_view above) {
        return above == key || is_instance_of(key, above) || (is_template(key) && is_instance(above, key));
    };
    return std::any_of(policy.tenants.begin(), policy.tenants.end(), [&](const TenantPolicy& tenant) {
        for (auto above = parent_of(tenant.name); above != node_tenant; above = parent_of(above))
            if (same(above)) return true;
        return false;
    });
}

}  // namespace rdmaquota
