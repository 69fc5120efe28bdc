#include "tools/common/guard/guard_counts.hpp"

#include <algorithm>

#include "tools/common/control_client.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

DeviceView& device_of(TenantView& tenant, const std::string& name) {
    auto& devices = tenant.devices;  // in the order of the ledger, the sum last
    const auto find = [&](std::string_view searched) {
        return std::find_if(devices.begin(), devices.end(), [&](const DeviceView& device) { return device.name == searched; });
    };
    if (const auto at = find(name); at != devices.end()) return *at;
    return *devices.insert(find(total_device), DeviceView{name, {}});
}

ResourceView& resource_of(DeviceView& device, Resource resource, const Json& cell) {
    auto& views = device.resources;
    const auto at = std::find_if(views.begin(), views.end(),
                                 [&](const ResourceView& view) { return index(view.resource) >= index(resource); });
    if (at != views.end() && at->resource == resource) return *at;
    const auto limit = cell.value("limit", Json());
    const auto bound = limit.is_number_unsigned() ? limit.get<std::uint64_t>() : unlimited;
    ResourceView view{};
    view.resource = resource;
    view.limit = view.configured = bound;
    view.soft = unlimited;
    return *views.insert(at, view);
}

void add(const Json& devices, TenantView& tenant) {
    for (const auto& [name, cells] : devices.items())
        for (const auto& [word, cell] : cells.items()) {
            const auto resource = find_resource(word);
            const auto used = cell.value("used", std::uint64_t{0}), refused = cell.value("refused", std::uint64_t{0});
            if (!resource || (used == 0 && refused == 0)) continue;
            auto& view = resource_of(device_of(tenant, name), *resource, cell);
            view.kernel = used;
            view.refused = refused;
        }
}

}  // namespace

Json guard_counts(const std::string& directory) {
    const auto answer = ask_sidecar(directory, Json{{"request", "guard"}}, std::chrono::milliseconds(500));
    if (answer && answer->contains("guard")) return (*answer)["guard"];
    return Json{{"state", GuardPins::all().empty() ? "off" : "kept"}};
}

std::string guard_words(std::string_view state) {
    if (state == "deny") return "on: the kernel refuses what exceeds a limit";
    if (state == "starting") return "starting: it refuses nothing before its limits are there";
    if (state == "watch") return "watching: what exceeds a limit is counted, and made";
    if (state == "kept") return "kept by the kernel with the limits that it had; no sidecar leads it";
    return "off";
}

void add_guard_counts(const Json& guard, TenantView& tenant) try {
    tenant.is_guarded = guard.value("state", "off") == "deny" && tenant.mode == Mode::enforce;
    for (const auto& of : guard.value("tenants", Json::array()))
        if (of.value("name", "") == tenant.name) add(of.at("devices"), tenant);
} catch (const Json::exception&) {  // a sidecar of another version
}

}  // namespace rdmaquota
