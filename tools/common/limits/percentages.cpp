#include "tools/common/limits/percentages.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/device_query.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

LimitRow capacity_row(const LimitsSegment& limits, const std::string& device) {
    auto row = unset_row();
    for (const auto& resource : resource_table) row[index(resource.id)] = load_limit(limits.row(capacity_scope, device), resource.id);
    return row;
}

// What is no longer known stays as it was.
LimitRow newer(LimitRow row, const LimitRow& before) {
    for (std::size_t r = 0; r < row.size(); ++r)
        if (row[r] == unset) row[r] = before[r];
    return row;
}

// What the sidecar learned of a device that has less than it reports (DeviceCapacity::learned).
void lower_to_learned(const std::string& directory, const std::string& device, LimitRow& row) try {
    const auto learned = Json::parse(file_text(capacity_path(directory)), nullptr, false);
    for (const auto& one : learned.is_array() ? learned : Json::array())
        if (const auto resource = find_resource(text_member(one, "resource"));
            resource && text_member(one, "device") == device && one.value("credible", false))
            row[index(*resource)] = std::min(row[index(*resource)], number_member(one, "found", unset));
} catch (const Json::exception&) {  // of another version
}

}  // namespace

LimitRow known_capacity(const DeviceMaxima& maxima) {
    auto row = unset_row();
    for (std::size_t r = 0; r < row.size(); ++r)
        if (maxima[r] != 0) row[r] = maxima[r];
    return row;
}

CapacityOfDevice asked_once(CapacityOfDevice ask) {
    return [ask = std::move(ask), known = std::map<std::string, LimitRow>()](const std::string& device) mutable {
        const auto [found, is_new] = known.try_emplace(device);
        if (is_new) found->second = ask(device);
        return found->second;
    };
}

Result<bool> resolve_percentages(const LimitsSegment& limits, const std::string& path, const std::vector<std::string>& devices,
                                 const CapacityOfDevice& capacity, std::chrono::milliseconds patience) {
    if (!limits.has_percentages()) return false;
    bool changed = false;
    for (const auto& device : devices) {
        const auto before = capacity_row(limits, device), row = newer(capacity(device), before);
        if (row == before) continue;
        auto writer = LimitsWriter::open(path, patience);
        if (!writer) return Error{writer.error()};
        if (auto set = writer->set_capacity(device, row); !set) return Error{set.error()};
        changed = true;
    }
    return changed;
}

Result<void> resolve_percentages(const std::string& directory) {
    const auto capacity = asked_once([&](const std::string& device) {
        auto row = known_capacity(device_maxima(device));
        lower_to_learned(directory, device, row);
        return row;
    });
    const auto devices = machine_devices();
    for (const auto& place : tenant_places(directory)) {
        const auto path = limits_path(place.here);
        const auto limits = LimitsSegment::open(path, LimitsSegment::Parts::all);
        if (!limits) continue;
        if (auto resolved = resolve_percentages(*limits, path, devices, capacity); !resolved) return Error{resolved.error()};
    }
    return {};
}

}  // namespace rdmaquota
