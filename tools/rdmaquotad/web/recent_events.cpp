#include "tools/rdmaquotad/web/recent_events.hpp"

#include <algorithm>

#include "shm/remedy.hpp"

namespace rdmaquota {
namespace {

std::string helps(const std::string& directory, const Tenant& tenant, const Event& event, const Json& json) {
    const auto device = json.find("device");
    if (event.kind == EventKind::refused_by_device || event.resource >= resource_count ||
        !device->is_string())
        return {};
    const auto scope = json.value("scope", "");
    Denial denial{static_cast<Resource>(event.resource), scope.starts_with("process") ? Scope::process : Scope::tenant,
                  scope.ends_with("_total")};
    denial.used = event.used;
    denial.limit = event.limit;
    denial.requested = event.requested;
    const auto reason = event.reason <= static_cast<std::uint32_t>(Reason::other) ? static_cast<Reason>(event.reason)
                                                                                   : Reason::configured;
    const auto name = device->get<std::string>();
    return remedy(name, denial, circumstances_of(directory, tenant.place().here, tenant.name(), name, denial, reason));
}

}  // namespace

void RecentEvents::add(const Tenant& tenant, std::uint64_t number, const Event& event, const Json& json) {
    if (is_repair(event.kind)) return;
    auto& list = tenants_[tenant.key()];
    std::erase_if(list, [&](const Recent& recent) { return recent.number == number; });
    auto copy = json;
    copy["helps"] = helps(directory_, tenant, event, json);
    list.push_back({event.time_ns, number, dump(copy)});
    if (list.size() > most) list.pop_front();
}

}  // namespace rdmaquota
