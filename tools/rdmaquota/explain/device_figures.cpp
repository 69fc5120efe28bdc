#include "tools/rdmaquota/explain/device_figures.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "tools/common/control_client.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/device_query.hpp"

namespace rdmaquota {
namespace {

std::uint64_t in_ledgers(const std::string& directory, const std::string& device, Resource resource) {
    const auto tenants = read_tenants(directory);
    std::uint64_t sum = 0;
    if (tenants)
        for (const auto& tenant : *tenants)
            if (!tenant.view.is_sum) sum += usage_of(tenant.view.devices, device, resource);
    return sum;
}

}  // namespace

std::string DeviceFigures::words(Resource resource) const {
    std::string text;
    if (told != 0) text += fmt::format("; the device tells of {} at most", format_amount(resource, told));
    if (in_use != 0) text += fmt::format("; {} in use on this node now", format_amount(resource, in_use));
    if (found != 0) text += fmt::format("; it has refused more than {} before", format_amount(resource, found));
    return text;
}

void add_status(const Json& status, const std::string& device, Resource resource, DeviceFigures& figures) try {
    const auto name = std::string(info(resource).name);
    const auto usage = status.value("usage", Json::object()).value(device, Json::object());
    figures.in_use = std::max(figures.in_use, usage.value(name, std::uint64_t{0}));
    for (const auto& one : status.value("capacity", Json::array()))
        if (one.value("device", "") == device && one.value("resource", "") == name)
            figures.found = one.value("found", std::uint64_t{0});
} catch (const Json::exception&) {  // a sidecar of another version
}

DeviceFigures device_figures(const std::string& directory, const std::string& device, Resource resource) {
    DeviceFigures figures{device_maxima(device)[index(resource)], in_ledgers(directory, device, resource), 0};
    if (const auto status = ask_sidecar(directory, Json{{"request", "status"}}, std::chrono::milliseconds(500)))
        add_status(*status, device, resource, figures);
    return figures;
}

}  // namespace rdmaquota
