#include "tools/common/tenants/read_tenants.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "policy/tenant.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "tools/common/devices.hpp"

namespace rdmaquota {
namespace {

using Parts = LimitsSegment::Parts;

}  // namespace

Result<TenantReading> read_place(const TenantPlace& place, NodeProcesses& processes) {
    const auto limits = LimitsSegment::open(limits_path(place.here), Parts::all);
    if (!limits) return Error{limits.error()};
    if (place.key == node_tenant || (!place.has_ledger() && place.key != default_tenant && !place.key.empty()))
        return TenantReading{place, sum_of({}, *limits), held_limits(*limits)};
    auto ledger = Ledger::open(ledger_path(place.here));
    if (!ledger) return Error{ledger.error()};
    ledger->reap(500'000'000);
    TenantReading reading{place, take_snapshot(*ledger, *limits), held_limits(*limits)};
    processes.name(reading.view, ledger_path(place.here));
    return reading;
}

namespace {

// Inner tenants have no ledger: what they use is the sum of those below. One that has become an inner one lately still has
// its own, while it is in use.
void add_up(std::vector<TenantReading>& tenants, const std::vector<std::string>& hidden) {
    std::vector<std::pair<TenantReading*, TenantView>> sums;
    for (auto& parent : tenants) {
        std::vector<const TenantView*> below;
        for (const auto& tenant : tenants)
            if (tenant.place.has_ledger() && is_below(tenant.place.key, parent.place.key)) below.push_back(&tenant.view);
        if (parent.place.key.empty() || (parent.place.has_ledger() && below.empty())) continue;
        if (parent.place.has_ledger()) below.push_back(&parent.view);
        if (const auto limits = LimitsSegment::open(limits_path(parent.place.here), Parts::all))
            sums.emplace_back(&parent, sum_of(below, *limits));
    }
    for (auto& [parent, sum] : sums) {
        sum.activity = std::move(parent->view.activity);
        sum.processes = std::move(parent->view.processes);
        sum.is_partial = std::any_of(hidden.begin(), hidden.end(), [&](const auto& key) { return is_below(key, parent->place.key); });
        parent->view = std::move(sum);
    }
}

}  // namespace

Result<std::vector<TenantReading>> read_tenants(const std::string& directory, std::string_view name) {
    std::vector<TenantPlace> places;
    const auto named = find_tenant(directory, name);
    if (!named) return Error{named.error()};
    for (auto& place : tenant_places(directory))
        if (!is_template(place.key) && (name.empty() || place.key == named->key || is_below(place.key, named->key)))
            places.push_back(std::move(place));
    if (places.empty()) places.push_back(*named);
    std::vector<TenantReading> tenants;
    std::optional<std::string> error;
    NodeProcesses processes;
    std::vector<std::string> hidden;
    for (const auto& place : places) {
        auto tenant = place.is_hidden() ? Error{fmt::format("only root may see tenant '{}'", printable(place.key))} : read_place(place, processes);
        if (tenant) tenants.push_back(std::move(*tenant));
        else hidden.push_back(place.key);
        if (!tenant && (!error || place.key == named->key)) error = tenant.error();
    }
    if (tenants.empty()) return Error{*error};
    add_up(tenants, hidden);
    return tenants;
}

std::uint64_t usage_of(const std::vector<DeviceView>& devices, std::string_view device, Resource resource) {
    for (const auto& view : devices)
        if (view.name == device)
            for (const auto& of : view.resources)
                if (of.resource == resource) return of.usage;
    return 0;
}

std::vector<std::string> devices_of(const TenantView& tenant, const LimitsSegment& limits) {
    auto names = machine_devices();
    for (const auto& device : tenant.devices) names.push_back(device.name);
    for (auto& device : limits.devices(Scope::process)) names.push_back(std::move(device));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.size() > 1) std::erase(names, any_device);  // which stands for the others
    return names;
}

bool is_used(const DeviceView& device) {
    return std::any_of(device.resources.begin(), device.resources.end(),
                       [](const ResourceView& view) { return view.used() != 0; });
}

}  // namespace rdmaquota
