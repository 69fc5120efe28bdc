#include "policy/file/limit_tables.hpp"

#include <algorithm>

#include "policy/file/limit_place.hpp"

namespace rdmaquota {

void LimitTables::devices(const toml::key& key, const toml::node& node, ScopeLimits& into) {
    const auto* table = reader_.as_table(key, node);
    if (table == nullptr) return;
    for (const auto& [name, rows] : *table) device(name, rows, into);
}

void LimitTables::device(const toml::key& device, const toml::node& node, ScopeLimits& into) {
    const auto* table = node.as_table();
    const bool resource = find_resource(device.str()).has_value();
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
    for (const auto& [key, value] : *table) limit(device.str(), key, value, row_for(into, device.str()));
}

bool LimitTables::looks_like_tenant(std::string_view device, const toml::key& key, const toml::node& node) const {
    return !tenant_.empty() && check_tenant_name(device) &&
           (node.is_table() || std::find(tenant_keys.begin(), tenant_keys.end(), key.str()) != tenant_keys.end());
}

void LimitTables::limit(std::string_view device, const toml::key& key, const toml::node& node, LimitRow& row) {
    const auto resource = find_resource(key.str());
    if (!resource && looks_like_tenant(device, key, node))
        return reader_.fail(
            key, fmt::format("unknown resource '{0}' of the device '{1}'; if {1} is a tenant, write [{2}]", key.str(),
                             device, tenant_header(fmt::format("{}/{}", tenant_, device))));
    if (!resource) return reader_.unknown("resource", key, TableReader::resource_list());
    if (const auto limitable = check_limitable(device, *resource); !limitable)
        return reader_.fail(key, limitable.error());
    if (node.is_table())
        return reader_.fail(node, fmt::format("{0} is a table; write the limit alone, as in {0} = {1}: soft limits and "
                                              "guarantees come with a later version",
                                              key.str(), info(*resource).unit == Unit::bytes ? "\"10GiB\"" : "100"));
    reader_.amount(*resource, node, row[index(*resource)]);
}

}  // namespace rdmaquota
