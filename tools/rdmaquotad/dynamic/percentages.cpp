#include "tools/rdmaquotad/dynamic/percentages.hpp"

#include <utility>

#include "shm/paths.hpp"
#include "tools/common/limits/percentages.hpp"
#include "tools/rdmaquotad/dynamic/capacity.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);  // for a command that changes the same file

}  // namespace

LimitRow Percentages::capacity_of(const std::string& device) const {
    DeviceMaxima maxima{};
    for (const auto& [resource, name, unit, counts] : resource_table) {
        const auto reported = told_by_device(device, resource), learned = learned_.credible(device, resource);
        maxima[index(resource)] = learned != 0 ? std::min(learned, reported) : reported;
    }
    return known_capacity(maxima);
}

void Percentages::resolve(const std::vector<std::string>& devices) {
    if (!node_.writable()) return;
    const auto capacity = asked_once([this](const std::string& device) { return capacity_of(device); });
    std::string error;
    for (auto& [key, tenant] : node_.tenants()) {
        if (tenant.limits() == nullptr) continue;
        const auto done = resolve_percentages(*tenant.limits(), limits_path(tenant.place().here), devices, capacity, patience);
        if (!done) error = done.error();
        else if (*done) tenant.refresh();
    }
    if (std::exchange(said_, error) != error && !error.empty()) log(Priority::warning, error);
}

}  // namespace rdmaquota
