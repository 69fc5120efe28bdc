// Tables of limits by device, such as [process."*"] and [tenant.physics.mlx5_0].
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "policy/file/table_reader.hpp"
#include "policy/policy.hpp"

namespace rdmaquota {

// The keys of [tenant.NAME] that are no devices.
inline constexpr std::array<std::string_view, 6> tenant_keys{"match",  "mode",  "deny_errno",
                                                             "weight", "grace", "process"};

class LimitTables {
public:
    // `header` is what stands in front of the device: "process", "tenant.physics". `tenant` is the tenant that devices
    // could be confused with tenants of, if any; see `device`.
    LimitTables(TableReader& reader, std::string header, std::string tenant = {})
        : reader_(reader), header_(std::move(header)), tenant_(std::move(tenant)) {}

    // Read into `into`; errors go to the reader.
    void devices(const toml::key& key, const toml::node& node, ScopeLimits& into);
    // One of them. [tenant.physics.atlas] is a table for the device atlas; when what it has looks like a tenant's, the
    // error says how a tenant below is written.
    void device(const toml::key& device, const toml::node& node, ScopeLimits& into);

private:
    bool looks_like_tenant(std::string_view device, const toml::key& key, const toml::node& node) const;
    void limit(std::string_view device, const toml::key& key, const toml::node& node, LimitRow& row);

    TableReader& reader_;
    std::string header_;
    std::string tenant_;
};

}  // namespace rdmaquota
