#include "tools/common/limits/named_devices.hpp"

#include <algorithm>
#include <set>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/devices.hpp"

namespace rdmaquota {

std::vector<TenantPlace> limit_places(const std::string& directory) {
    auto places = tenant_places(directory);
    if (!is_own_directory(directory))
        places.push_back({std::string(everyone_key), here_path(directory, everyone_key)});
    return places;
}

namespace {

// Devices in rows of limits: those that something names, and all.
struct DeviceRows {
    std::set<std::string> named, all;

    explicit DeviceRows(const std::vector<TenantPlace>& places) {
        for (const auto& place : places)
            if (const auto limits = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all)) add(*limits);
    }

private:
    void add(const LimitsSegment& limits) {
        for (const auto scope : {Scope::tenant, Scope::process})
            for (const auto& device : limits.devices(scope)) {
                all.insert(device);
                if (is_configured(limits, scope, device)) named.insert(device);
            }
    }
};

}  // namespace

std::vector<std::string> known_devices(const std::string& directory) {
    const auto machine = machine_devices();
    std::set<std::string> known(machine.begin(), machine.end());
    for (const auto& place : tenant_places(directory))
        if (const auto ledger = Ledger::open(ledger_path(place.here)))
            for (const auto& [number, name] : devices_of(*ledger))
                if (!is_port(name)) known.insert(name);
    return {known.begin(), known.end()};
}

Result<void> drop_unnamed_devices(const std::string& directory) {
    const auto places = limit_places(directory);
    const DeviceRows rows(places);
    std::vector<std::string> unnamed;
    for (const auto& device : rows.all)
        if (!rows.named.contains(device) && device != any_device && device != total_device) unnamed.push_back(device);
    if (unnamed.empty()) return {};
    const auto known = known_devices(directory);
    std::erase_if(unnamed, [&](const std::string& device) {
        return std::binary_search(known.begin(), known.end(), without_port(device));
    });
    if (unnamed.empty()) return {};
    for (const auto& place : places) {
        auto writer = LimitsWriter::open(limits_path(place.here));
        if (!writer) return Error{writer.error()};
        if (auto dropped = writer->drop(unnamed); !dropped) return dropped;
    }
    return {};
}

}  // namespace rdmaquota
