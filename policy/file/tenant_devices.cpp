// `devices` of a tenant: which devices its programs list and open.
#include <algorithm>

#include "policy/file/tenant_tables.hpp"

namespace rdmaquota {
namespace {

using Devices = std::optional<std::vector<std::string>>;

const Devices none;

const Devices& devices_in(const LocationsByTenant& locations, std::string_view tenant) {
    const auto found = locations.find(tenant);
    return found == locations.end() ? none : found->second.devices;
}

// The tenant's own, else those of the template that it overrides, else of the nearest tenant above with some.
const Devices& devices_of(const Policy& policy, const LocationsByTenant& locations, const TenantPolicy& tenant) {
    if (const auto& own = devices_in(locations, tenant.name)) return own;
    for (const auto& other : policy.tenants)
        if (tenant.is_override && is_template(other.name) && is_instance(tenant.name, other.name))
            return devices_of(policy, locations, other);
    for (auto above = parent_of(tenant.name); above != node_tenant; above = parent_of(above))
        if (const auto* parent = find_or_template(policy, above))
            if (const auto& theirs = devices_in(locations, parent->name)) return theirs;
    return none;
}

constexpr auto handle = index(Resource::hca_handle);

// The device that has handles and is not among `devices`; null: none.
const DeviceLimits* find_excluded(const ScopeLimits& limits, const std::vector<std::string>& devices) {
    for (const auto& row : limits) {
        const bool has_handles = row.limits[handle] != unset && row.limits[handle] != 0;
        const bool excluded = std::find(devices.begin(), devices.end(), row.device) == devices.end();
        if (has_handles && excluded && row.device != any_device && row.device != total_device) return &row;
    }
    return nullptr;
}

void limit_to(ScopeLimits& limits, const std::vector<std::string>& devices) {
    for (const auto& device : devices) {
        const auto said = value_for(limits, device, Resource::hca_handle);
        row_for(limits, device)[handle] = said == unset ? unlimited : said;
    }
    row_for(limits, any_device)[handle] = 0;
}

}  // namespace

Result<void> apply_devices(Policy& policy, const LocationsByTenant& locations) {
    for (auto& tenant : policy.tenants) {
        const auto& devices = devices_of(policy, locations, tenant);
        if (!devices) continue;
        auto& limits = tenant.limits[index(Scope::tenant)];
        if (const auto* row = find_excluded(limits, *devices)) {
            const auto at = locations.find(tenant.name);
            return Error{fmt::format("{}tenant '{}' has hca_handle for {}, which is not among its devices; add it to devices, or remove "
                                     "the limit", at == locations.end() ? "" : at->second.name, tenant.name, row->device)};
        }
        limit_to(limits, *devices);
        tenant.hides_devices = true;
    }
    return {};
}

}  // namespace rdmaquota
