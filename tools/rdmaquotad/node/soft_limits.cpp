#include "tools/rdmaquotad/node/soft_limits.hpp"

#include <fmt/core.h>

namespace rdmaquota {

void SoftLimits::look() {
    std::set<Place> above;
    for (const auto* tenant : node_.with_ledger())
        if (tenant->limits() != nullptr) add_above(*tenant, above);
    for (const auto& [tenant, device, resource] : above_)
        if (!above.contains({tenant, device, resource}))
            events_.emit(Priority::info, "below_soft", Json{{"tenant", tenant}, {"device", device}, {"resource", info(resource).name}},
                         fmt::format("tenant {} is no longer above its soft limit of {} on {}", tenant, info(resource).name, device));
    above_ = std::move(above);
}

void SoftLimits::add_above(const Tenant& tenant, std::set<Place>& above) {
    const auto& limits = *tenant.limits();
    for (const auto& on : tenant.ledger().figures().devices)
        for (const auto& row : resource_table) {
            const auto used = on.usage[index(row.id)], soft = used == 0 ? unlimited : limits.soft(on.device, row.id);
            if (used <= soft) continue;
            Place place{tenant.name(), on.device, row.id};
            if (!above_.contains(place))
                events_.emit(Priority::notice, "above_soft",
                             Json{{"tenant", tenant.name()}, {"device", on.device}, {"resource", row.name}, {"used", used}, {"soft", soft},
                                  {"grace_s", limits.grace_s()}},
                             fmt::format("tenant {} uses {} of {} on {}, more than its soft limit of {}, which holds like any other after a "
                                         "grace period of {} s", tenant.name(), format_amount(row.id, used), row.name, on.device,
                                         format_amount(row.id, soft), limits.grace_s()));
            above.insert(std::move(place));
        }
}

}  // namespace rdmaquota
