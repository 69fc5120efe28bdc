#include "tools/rdmaquotad/web/web_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "policy/node_memory.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/views/snapshot_json.hpp"
#include "tools/rdmaquotad/web/state_text.hpp"

namespace rdmaquota {
namespace {

std::string host() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::uint64_t now_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// Creations that the guard refused: only what is not 0.
Json refused_of(const Json& guard) {
    Json list = Json::array();
    for (const auto& tenant : guard["tenants"])
        for (const auto& [device, cells] : tenant["devices"].items())
            for (const auto& [resource, cell] : cells.items())
                if (const auto refused = cell.value("refused", std::uint64_t{0}); refused != 0)
                    list.push_back({tenant["name"], device, resource, refused});
    return list;
}

}  // namespace

std::vector<Tenant*> WebState::seen_by(const Peer& viewer) {
    std::vector<Tenant*> seen;
    for (auto& [key, tenant] : sources_.node.tenants())
        if (tenant.limits() != nullptr && !is_template(key) && sources_.visibility.sees(viewer, tenant))
            seen.push_back(&tenant);
    return seen;
}

Text WebState::text(const Peer& viewer) {
    const auto now = Clock::now();
    if (now - made_ > age) {
        texts_.clear();
        made_ = now;
    }
    const auto tenants = seen_by(viewer);
    std::string key = viewer.privileged ? "all\n" : "";
    for (const auto* tenant : tenants) key += tenant->key() + '\n';
    auto& text = texts_[key];
    if (!text) text = std::make_shared<const std::string>(make(viewer, tenants));
    return text;
}

std::string WebState::make(const Peer& viewer, const std::vector<Tenant*>& tenants) {
    const auto by_key = [&](const std::string& key) { return sources_.visibility.sees_key(viewer, key); };
    const auto by_name = [&](const std::string& name) { return sources_.visibility.sees_name(viewer, name); };
    auto guard = sources_.guard(by_name);
    const auto refused = refused_of(guard);
    StateText state(sources_.views.of(tenants), most_top);
    return fmt::format(R"({{"time":{},"host":{},"version":"{}","all":{},"node":{},{},"events":[{}],)"
                       R"("bypasses":{},"refused":{},"capacity":{},"churn":{}}})",
                       now_ms(), dump(Json(host())), config::version, viewer.privileged,
                       dump(about(viewer, std::move(guard))),
                       state.text([this](uid_t user) { return users_.of(user); }), events(viewer),
                       dump(sources_.bypasses(by_key)), dump(refused), dump(capacity()), dump(churn(viewer)));
}

// doctor names tenants.
Json WebState::about(const Peer& viewer, Json guard) {
    auto about = sources_.about();
    guard.erase("tenants");
    about["guard"] = std::move(guard);
    about["missing"] = sources_.node.missing();
    about["devices"] = machine_devices();
    about["memory"] = node_memory();
    about["findings"] = viewer.privileged ? sources_.findings.all() : Json();
    return about;
}

Json WebState::capacity() const {
    Json list = Json::array();
    for (const auto& [place, figure] : sources_.capacity.all())
        if (figure.capacity != 0) list.push_back({place.first, info(place.second).name, figure.capacity});
    return list;
}

Json WebState::churn(const Peer& viewer) {
    const auto tenth = [](double rate) { return std::round(rate * 10) / 10; };
    Json list = Json::array();
    for (const auto& rate : sources_.churn.all()) {
        if (!sources_.visibility.sees_key(viewer, rate.tenant)) continue;
        const auto* tenant = sources_.node.find(rate.tenant);
        list.push_back({tenant == nullptr ? Json() : Json(tenant->name()), rate.device, info(rate.resource).name,
                        tenth(rate.created), tenth(rate.destroyed)});
    }
    return list;
}

// The newest of ledgers and sidecar, newest first. What helps is looked up for those that are shown only.
std::string WebState::events(const Peer& viewer) {
    using Words = std::function<std::string()>;
    std::vector<std::pair<std::uint64_t, Words>> all;
    for (const auto& [key, of] : sources_.recent.all())
        if (sources_.visibility.sees_key(viewer, key))
            for (const auto& recent : of.events)
                all.emplace_back(recent.event.time_ns, [this, &of = of, &recent = recent] {
                    return sources_.recent.text(of, recent, users_.of(recent.event.uid));
                });
    const auto& own = sources_.events.all();
    std::size_t taken = 0;
    for (auto event = own.rbegin(); event != own.rend() && taken < most_events; ++event)
        if (sources_.visibility.sees_event(viewer, event->fields.value("tenant", ""))) {
            all.emplace_back(event->time_ns, [&one = *event] { return dump(to_json(one)); });
            ++taken;
        }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most_events));
    std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (auto event = all.begin(); event != end; ++event) text += (text.empty() ? "" : ",") + event->second();
    return text;
}

Text WebState::tenant(const Peer& viewer, const std::string& name, std::uint32_t pid) {
    for (auto* tenant : seen_by(viewer)) {
        if (tenant->name() != name) continue;
        const auto& whole = *sources_.views.of({tenant}).front();
        TenantView view{whole.name, whole.mode, whole.weight, whole.devices, whole.activity, {}, whole.is_sum};
        for (const auto& process : whole.processes)
            if ((pid == 0 || process.pid == pid) && view.processes.size() < most_processes)
                view.processes.push_back(process);
        auto json = tenant_json(view);
        json["all_processes"] = whole.processes.size();
        json["changed_limits"] = held_json(tenant->held());
        for (auto& process : json["processes"]) process["user"] = users_.of(process["uid"].get<uid_t>());
        return std::make_shared<const std::string>(dump(json));
    }
    return nullptr;
}

}  // namespace rdmaquota
