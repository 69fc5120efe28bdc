#include "policy/file/limit_tables.hpp"

#include <algorithm>

#include "policy/file/limit_place.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view no_burst = "a burst is possible for a tenant as a whole only; elsewhere it is what the rate allows in a second";

Result<void> check_part_of(Resource resource, std::string_view part) {
    if (is_rate(resource) == (part == "burst")) return {};
    return Error{fmt::format("{} is {}", info(resource).name,
                             is_rate(resource) ? "a rate, which has a burst and no soft limit" : "no rate, and only a rate has a burst")};
}

}  // namespace

void LimitTables::devices(const toml::key& key, const toml::node& node, ScopeLimits& into) {
    const auto* table = reader_.as_table(key, node);
    if (table == nullptr) return;
    for (const auto& [name, rows] : *table) device(name, rows, into);
}

void LimitTables::device(const toml::key& device, const toml::node& node, ScopeLimits& into) {
    const auto* table = node.as_table();
    const bool resource = find_limit(device.str()).has_value();
    if (table == nullptr && resource)
        return reader_.fail(
            device, fmt::format("{} needs a device; write it below a table such as [{}.\"*\"]", device.str(), header_));
    if (table == nullptr && device == "match")
        return reader_.fail(device,
                            fmt::format("[{}] has no match; only a tenant has one, as in [tenant.physics]", header_));
    if (!valid_device(device.str()))
        return reader_.fail(device, fmt::format("'{}' is no device name; write one such as mlx5_0, a port such as "
                                                "\"mlx5_0/1\", \"*\" for each device, or total for their sum",
                                                device.str()));
    if (table == nullptr)
        return reader_.fail(device, fmt::format("unknown key '{0}': [{1}] has tables of limits by device only, such as "
                                                "[{1}.\"*\"]",
                                                device.str(), header_));
    for (const auto& [key, value] : *table)
        if (key == all_resources) all(device.str(), *table, value, into);
        else limit(device.str(), key, value, into);
}

// all = "25%": what the table does not name itself.
void LimitTables::all(std::string_view device, const toml::table& table, const toml::node& node, ScopeLimits& into) {
    const auto* text = node.as_string();
    if (text == nullptr || !text->get().ends_with('%'))
        return reader_.fail(node, "all takes a percentage, such as \"25%\"; write amounts, guarantees and soft limits for each resource");
    for (const auto resource : resources_with_capacity(device))
        if (!table.contains(info(resource).name)) reader_.amount(resource, node, row_for(into, device)[index(resource)]);
}

bool LimitTables::looks_like_tenant(std::string_view device, const toml::key& key, const toml::node& node) const {
    return !tenant_.empty() && check_tenant_name(device) &&
           (node.is_table() || std::find(tenant_keys.begin(), tenant_keys.end(), key.str()) != tenant_keys.end());
}

void LimitTables::limit(std::string_view device, const toml::key& key, const toml::node& node, ScopeLimits& into) {
    const auto resource = find_limit(key.str());
    if (!resource && looks_like_tenant(device, key, node))
        return reader_.fail(
            key, fmt::format("unknown resource '{0}' of the device '{1}'; if {1} is a tenant, write [{2}]", key.str(),
                             device, tenant_header(fmt::format("{}/{}", tenant_, device))));
    if (!resource) return reader_.unknown("resource", key, TableReader::resource_list());
    if (const auto limitable = check_limitable(device, *resource); !limitable)
        return reader_.fail(key, limitable.error());
    if (const auto* table = node.as_table()) return parts(device, *resource, *table, into);
    amount(device, *resource, node, row_for(into, device)[index(*resource)]);
}

void LimitTables::amount(std::string_view device, Resource resource, const toml::node& node, std::uint64_t& into) {
    reader_.amount(resource, node, into);
    if (const auto limitable = check_limitable(device, resource, into); !limitable) reader_.fail(node, limitable.error());
}

// { limit = 400, guarantee = 100, soft = 300 }, and for a rate { limit = 2000, burst = 4000 }
void LimitTables::parts(std::string_view device, Resource resource, const toml::table& table, ScopeLimits& into) {
    for (const auto& [key, value] : table) part(device, resource, key, value, into);
    if (!is_rate(resource)) check_order(device, resource, table, into);
}

void LimitTables::part(std::string_view device, Resource resource, const toml::key& key, const toml::node& node,
                       ScopeLimits& into) {
    static constexpr std::array<std::string_view, 4> known{"limit", "guarantee", "soft", "burst"};
    if (key == "limit") return amount(device, resource, node, row_for(into, device)[index(resource)]);
    if (key == "guarantee") return guarantee(device, resource, key, node);
    if (key != "soft" && key != "burst") return reader_.unknown("value", key, known);
    if (const auto good = check_part_of(resource, key.str()); !good) return reader_.fail(key, good.error());
    if (key == "soft" && device == total_device)
        return reader_.fail(key, "there is no soft limit for the sum over devices; write it for a device or \"*\"");
    if (parts_.softs == nullptr) return reader_.fail(key, std::string(is_rate(resource) ? no_burst : parts_.no_soft));
    auto& value = row_for(*parts_.softs, device)[index(resource)];
    amount(device, resource, node, value);
    if (is_rate(resource) && (value == unlimited || value == 0)) reader_.fail(node, "a burst is an amount above 0");
}

void LimitTables::guarantee(std::string_view device, Resource resource, const toml::key& key, const toml::node& node) {
    if (parts_.guarantees == nullptr) return reader_.fail(key, std::string(parts_.no_guarantee));
    auto& value = row_for(*parts_.guarantees, device)[index(resource)];
    amount(device, resource, node, value);
    if (value == unlimited) reader_.fail(node, "a guarantee must be an amount; \"max\" cannot be reserved");
}

// A limit that another file says may be another one, so only what stands together is compared.
void LimitTables::check_order(std::string_view device, Resource resource, const toml::table& table,
                              const ScopeLimits& into) {
    const auto* limits = find_row(into, device);
    if (limits == nullptr || !table.contains("limit")) return;
    const auto limit = (*limits)[index(resource)];
    const auto check = [&](std::string_view part, const ScopeLimits* of) {
        const auto* row = of == nullptr ? nullptr : find_row(*of, device);
        if (row == nullptr || !table.contains(part) || (*row)[index(resource)] == unset) return;
        const auto value = (*row)[index(resource)];
        if (limit != unset && are_comparable(value, limit) && value > limit)
            reader_.fail(*table.get(part), fmt::format("the {} is above the limit; it can never be reached", part == "soft" ? "soft limit" : part));
    };
    check("guarantee", parts_.guarantees);
    check("soft", parts_.softs);
}

}  // namespace rdmaquota
