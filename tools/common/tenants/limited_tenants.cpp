#include "tools/common/tenants/limited_tenants.hpp"

#include "policy/tenant.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {

LimitedTenants::LimitedTenants(const std::string& directory) {
    for (auto& place : tenant_places(directory)) {
        if (is_template(place.key)) continue;
        auto limits = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all);
        if (!limits) continue;
        const auto& name = names_.emplace_back(limits->tenant());
        const auto& mapped = segments_.emplace_back(std::move(*limits));
        const auto& kept = places_.emplace_back(std::move(place));
        list_.push_back({kept.key, name, kept.here, &mapped, kept.has_ledger()});
    }
}

}  // namespace rdmaquota
