#include "tools/rdmaquotad/web/recent_events.hpp"

#include <algorithm>

#include "shm/remedy.hpp"

namespace rdmaquota {
namespace {

std::string helps(const std::string& directory, const RecentEvents::OfTenant& of, const Event& event,
                  const Json& json) {
    const auto device = json.find("device");
    if (event.kind == EventKind::refused_by_device || event.resource >= limit_count || !device->is_string())
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
    return remedy(name, denial, circumstances_of(directory, of.here, of.name, name, denial, reason));
}

}  // namespace

void RecentEvents::add(const Tenant& tenant, std::uint64_t number, const Event& event, const Json& json) {
    if (is_repair(event.kind)) return;
    auto& of = tenants_[tenant.key()];
    of.name = tenant.name();
    of.here = tenant.place().here;
    std::erase_if(of.events, [&](const Recent& recent) { return recent.number == number; });
    of.events.push_back({number, event, json});
    if (of.events.size() > most) of.events.pop_front();
}

void RecentEvents::keep(const std::function<bool(const std::string& key)>& is_there) {
    std::erase_if(tenants_, [&](const auto& entry) { return !is_there(entry.first); });
}

std::string RecentEvents::text(const OfTenant& of, const Recent& recent, const std::string& user) const {
    auto json = recent.json;
    json["user"] = user;
    json["helps"] = helps(directory_, of, recent.event, recent.json);
    return dump(json);
}

}  // namespace rdmaquota
