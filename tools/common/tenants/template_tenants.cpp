#include "tools/common/tenants/template_tenants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view user_placeholder = "{user}";

// The user in a key such as "user/#1000".
std::optional<uid_t> user_of(std::string_view key) {
    const auto number = key.find('#');
    if (number == key.npos) return std::nullopt;
    return static_cast<uid_t>(std::strtoul(std::string(key.substr(number + 1)).c_str(), nullptr, 10));
}

// The key of the tenant that people call `name`, of a template with {user}; none where the user is not known.
std::optional<std::string> key_of_instance(std::string_view template_name, std::string_view name, const NameLookup& names) {
    const auto before = template_name.substr(0, template_name.find(user_placeholder));
    const auto level = std::count(before.begin(), before.end(), '/');
    std::size_t begin = 0;
    for (auto left = level; left > 0; --left) begin = name.find('/', begin) + 1;
    const auto end = std::min(name.find('/', begin), name.size());
    const auto user = names.user(std::string(name.substr(begin, end - begin)));
    if (!user) return std::nullopt;
    return fmt::format("{}{}{}", name.substr(0, begin), user_element(*user), name.substr(end));
}

}  // namespace

std::string shown_name(std::string_view key) {
    const auto number = key.find('#');
    if (number == key.npos) return std::string(key);
    const auto end = std::min(key.find('/', number), key.size());
    return fmt::format("{}{}{}", key.substr(0, number), user_name(*user_of(key)), key.substr(end));
}

void resolve_overrides(Policy& policy, const NameLookup& names) {
    std::vector<std::string> unknown;
    for (auto& tenant : policy.tenants) {
        const auto* from = tenant.is_override ? template_with(policy, tenant.name) : nullptr;
        if (from == nullptr || from->name.find(user_placeholder) == std::string::npos) continue;
        if (tenant.name.find('#') != std::string::npos) continue;
        if (auto key = key_of_instance(from->name, tenant.name, names)) {
            if (policy.find(*key) == nullptr) {
                tenant.name = std::move(*key);
                continue;
            }
            policy.warnings.push_back(fmt::format("tenant {}: another table is of the same user and holds; put both into one",
                                                  tenant.name));
            unknown.push_back(tenant.name);
            continue;
        }
        policy.warnings.push_back(fmt::format("tenant {}: there is no such user; its limits override those of template '{}' once "
                                              "there is and 'rdmaquota reload' has run", tenant.name, from->name));
        unknown.push_back(tenant.name);
    }
    std::erase_if(policy.tenants, [&](const TenantPolicy& tenant) {
        return std::find(unknown.begin(), unknown.end(), tenant.name) != unknown.end();
    });
}

LedgerAccess access_of_instance(const TenantPolicy& from, std::string_view key, const NameLookup& names) {
    const auto user = user_of(key);
    if (!user) return access_of(from, names);
    return {.mode = 0600, .users = {*user}, .groups = {}};
}

std::string instance_of_user(std::string_view template_name, uid_t user) {
    std::string key(template_name);
    const auto at = key.find(user_placeholder);
    return at == key.npos ? key : key.replace(at, user_placeholder.size(), user_element(user));
}

// The template's limits in force, which `set` may have changed.
Result<void> put_instance_limits(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                                 std::string_view key) {
    auto filled = from;
    fill_limits(directory, filled);
    auto limits = limits_of(policy, filled);
    limits.tenant = shown_name(key);
    return put_limits(directory, key, limits, 0755, limits_path(here_path(directory, from.name)));
}

Result<void> put_limits_above(const std::string& directory, const Policy& policy, std::string_view key) {
    const auto above = parent_of(key);
    if (above == node_tenant) return {};
    if (auto put = put_limits_above(directory, policy, above); !put) return put;
    const auto* from = template_of(policy, above);
    if (from == nullptr || ::access(limits_path(here_path(directory, above)).c_str(), F_OK) == 0) return {};
    return put_instance_limits(directory, policy, *from, above);
}

Result<void> make_instance(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                           std::string_view key, const LedgerAccess& access) {
    if (auto above = put_limits_above(directory, policy, key); !above) return above;
    const TenantPlace place{std::string(key), here_path(directory, key)};
    if (auto made = make_here(directory, key); !made) return made;
    if (auto put = put_ledger(place, access); !put) return Error{put.error()};
    if (auto opened = open_directory(directory, key, 0755); !opened) return opened;
    return put_instance_limits(directory, policy, from, key);
}

Result<void> put_override(const std::string& directory, const Policy& policy, const TenantPolicy& tenant,
                          const NameLookup& names) {
    const auto* from = template_with(policy, tenant.name);
    if (from == nullptr) return {};  // an override of a template that the policy no longer has
    if (auto above = put_limits_above(directory, policy, tenant.name); !above) return above;
    const TenantPlace place{tenant.name, here_path(directory, tenant.name)};
    auto limits = limits_of(policy, tenant);
    limits.tenant = shown_name(tenant.name);
    if (auto put = put_limits(directory, tenant.name, limits); !put) return put;
    if (is_inner(policy, tenant.name)) {
        remove_unused_ledger(place);
        return {};
    }
    if (auto put = put_ledger(place, access_of_instance(*from, tenant.name, names)); !put) return Error{put.error()};
    return open_directory(directory, tenant.name, 0755);
}

}  // namespace rdmaquota
