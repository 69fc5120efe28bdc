#include "policy/file/limit_place.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "policy/tenant.hpp"

namespace rdmaquota {
namespace {

// A key without quotes where TOML needs none.
std::string toml_key(std::string_view name) {
    const auto bare = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    };
    if (!name.empty() && std::all_of(name.begin(), name.end(), bare)) return std::string(name);
    return in_quotes(name);
}

bool of_every_process(const LimitKey& key) { return key.tenant.empty() && key.scope == Scope::process; }

}  // namespace

std::string tenant_header(std::string_view tenant) { return "tenant." + toml_key(tenant); }

std::string header_of(const LimitKey& key) {
    if (of_every_process(key)) return fmt::format("[process.\"{}\"]", key.device);
    if (key.tenant == node_tenant) return fmt::format("[node.\"{}\"]", key.device);
    return fmt::format("[{}{}.\"{}\"]", tenant_header(key.tenant), key.scope == Scope::process ? ".process" : "",
                       key.device);
}

const toml::table* find_table(const toml::table& root, const LimitKey& key) {
    if (of_every_process(key)) return root["process"][key.device].as_table();
    if (key.tenant == node_tenant) return root["node"][key.device].as_table();
    const auto tenant = root["tenant"][key.tenant];
    return (key.scope == Scope::process ? tenant["process"] : tenant)[key.device].as_table();
}

}  // namespace rdmaquota
