// Tables of limits by device, such as [process."*"] and [tenant.physics.mlx5_0].
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "policy/file/table_reader.hpp"
#include "policy/policy.hpp"

namespace rdmaquota {

// The keys of [tenant.NAME] that are no devices.
inline constexpr std::array<std::string_view, 9> tenant_keys{"match", "mode", "deny_errno", "weight", "grace", "max_delay", "process", "devices", "cluster"};

class LimitTables {
public:
    // Where guarantees, and soft limits and bursts, are read into; the texts say why one is not possible here, or are empty.
    struct Parts {
        ScopeLimits* guarantees = nullptr;
        ScopeLimits* softs = nullptr;
        std::string_view no_guarantee = "a guarantee is possible for a tenant as a whole only";
        std::string_view no_soft = "a soft limit is possible for a tenant as a whole only";
    };

    // `header` is what stands in front of the device: "process", "tenant.physics". `tenant` is the tenant that devices
    // could be confused with tenants of, if any; see `device`.
    LimitTables(TableReader& reader, std::string header, std::string tenant = {})
        : LimitTables(reader, std::move(header), std::move(tenant), Parts()) {}
    LimitTables(TableReader& reader, std::string header, std::string tenant, Parts parts)
        : reader_(reader), header_(std::move(header)), tenant_(std::move(tenant)), parts_(parts) {}

    // Read into `into`; errors go to the reader.
    void devices(const toml::key& key, const toml::node& node, ScopeLimits& into);
    // One of them. [tenant.physics.atlas] is a table for the device atlas; when what it has looks like a tenant's, the
    // error says how a tenant below is written.
    void device(const toml::key& device, const toml::node& node, ScopeLimits& into);

private:
    bool looks_like_tenant(std::string_view device, const toml::key& key, const toml::node& node) const;
    void limit(std::string_view device, const toml::key& key, const toml::node& node, ScopeLimits& into);
    void all(std::string_view device, const toml::table& table, const toml::node& node, ScopeLimits& into);
    void amount(std::string_view device, Resource resource, const toml::node& node, std::uint64_t& into);
    void parts(std::string_view device, Resource resource, const toml::table& table, ScopeLimits& into);
    void part(std::string_view device, Resource resource, const toml::key& key, const toml::node& node,
              ScopeLimits& into);
    void guarantee(std::string_view device, Resource resource, const toml::key& key, const toml::node& node);
    void check_order(std::string_view device, Resource resource, const toml::table& table, const ScopeLimits& into);

    TableReader& reader_;
    std::string header_;
    std::string tenant_;
    Parts parts_;
};

}  // namespace rdmaquota
