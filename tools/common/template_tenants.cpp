#include "tools/common/template_tenants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/names.hpp"
#include "tools/common/tenants.hpp"

namespace rdmaquota {
namespace {

// The user in a key such as "user/#1000".
std::optional<uid_t> user_of(std::string_view key) {
    const auto number = key.find('#');
    if (number == key.npos) return std::nullopt;
    return static_cast<uid_t>(std::strtoul(std::string(key.substr(number + 1)).c_str(), nullptr, 10));
}

// "user/alice" for "user/#1000".
std::string shown_name(std::string_view key) {
    const auto number = key.find('#');
    if (number == key.npos) return std::string(key);
    const auto end = std::min(key.find('/', number), key.size());
    return fmt::format("{}{}{}", key.substr(0, number), user_name(*user_of(key)), key.substr(end));
}

}  // namespace

LedgerAccess access_of_instance(const TenantPolicy& from, std::string_view key, const NameLookup& names) {
    const auto user = user_of(key);
    if (!user) return access_of(from, names);
    return {.mode = 0600, .users = {*user}, .groups = {}};
}

std::string instance_of_user(std::string_view template_name, uid_t user) {
    static constexpr std::string_view placeholder = "{user}";
    std::string key(template_name);
    const auto at = key.find(placeholder);
    return at == key.npos ? key : key.replace(at, placeholder.size(), user_element(user));
}

namespace {

// By the template's limits in force, which `set` may have changed.
TenantLimits limits_of_instance(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                                std::string_view key) {
    auto filled = from;
    fill_limits(directory, filled);
    auto limits = limits_of(policy, filled);
    limits.tenant = shown_name(key);
    return limits;
}

}  // namespace

Result<void> put_inner_instance(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                                std::string_view key) {
    return put_limits(directory, key, limits_of_instance(directory, policy, from, key));
}

Result<void> put_limits_above(const std::string& directory, const Policy& policy, std::string_view key) {
    const auto above = parent_of(key);
    if (above == node_tenant) return {};
    if (auto put = put_limits_above(directory, policy, above); !put) return put;
    const auto* from = template_of(policy, above);
    if (from == nullptr || ::access(limits_path(here_path(directory, above)).c_str(), F_OK) == 0) return {};
    return put_inner_instance(directory, policy, *from, above);
}

Result<void> make_instance(const std::string& directory, const Policy& policy, const TenantPolicy& from,
                           std::string_view key, const LedgerAccess& access) {
    if (auto above = put_limits_above(directory, policy, key); !above) return above;
    const TenantPlace place{std::string(key), here_path(directory, key)};
    if (auto made = make_here(directory, key); !made) return made;
    if (auto put = put_ledger(place, access); !put) return Error{put.error()};
    if (auto opened = open_directory(directory, key, 0755); !opened) return opened;
    return put_limits(directory, key, limits_of_instance(directory, policy, from, key));
}

}  // namespace rdmaquota
