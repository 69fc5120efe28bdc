#include "tools/rdmaquotad/dynamic/device_capacity.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/common/views/json.hpp"

namespace rdmaquota {

void DeviceCapacity::add(const std::string& device, const Event& event) {
    if (event.kind != EventKind::refused_by_device || event.resource >= resource_count || refused_.size() >= most) return;
    const auto& row = resource_table[event.resource];
    const bool shortage = event.error == ENOMEM || event.error == EAGAIN || event.error == ENOSPC;
    if (row.unit != Unit::count || !shortage) return;
    auto& in_use = refused_[{device, row.id}];
    in_use = std::max(in_use, event.used);
}

void DeviceCapacity::learn(const NodeUsage& usage) {
    for (auto& [place, learned] : learned_) learned.found = std::max(learned.found, usage.of_node(place.first, place.second));
    for (const auto& [place, in_use] : std::exchange(refused_, {})) {
        const auto found = std::max(in_use, usage.of_node(place.first, place.second));
        const auto told = told_(place.first, place.second);
        const bool credible = told != 0 && usage.counted(place.first, place.second) >= told / 2;
        if (found != 0 && learned_.size() < most) learned_[place] = {found, credible};
    }
    std::erase_if(learned_, [this](const auto& entry) {
        const auto told = told_(entry.first.first, entry.first.second);
        return told != 0 && entry.second.found >= told;
    });
}

void DeviceCapacity::look(const std::vector<std::string>& devices, const NodeUsage& usage) {
    learn(usage);
    in_use_.clear();
    for (const auto& device : devices)
        for (const auto& row : resource_table) in_use_[{device, row.id}] = usage.of_node(device, row.id);
}

std::map<DeviceCapacity::Place, DeviceCapacity::Figure> DeviceCapacity::all() const {
    std::map<Place, Figure> all;
    for (const auto& [place, in_use] : in_use_) {
        const auto found = learned_.find(place);
        const Figure figure{in_use, found != learned_.end() ? found->second.found : told_(place.first, place.second)};
        if (figure.in_use != 0 || figure.capacity != 0) all[place] = figure;
    }
    return all;
}

Json DeviceCapacity::learned() const {
    Json list = Json::array();
    for (const auto& [place, learned] : learned_)
        list.push_back({{"device", place.first},
                        {"resource", info(place.second).name},
                        {"told", told_(place.first, place.second)},
                        {"found", learned.found},
                        {"credible", learned.credible}});
    return list;
}

std::uint64_t DeviceCapacity::credible(const std::string& device, Resource resource) const {
    const auto learned = learned_.find({device, resource});
    return learned != learned_.end() && learned->second.credible ? learned->second.found : 0;
}

void DeviceCapacity::restore(const Json& learned) try {
    for (const auto& one : learned) {
        const auto resource = find_resource(one.at("resource").get<std::string>());
        const auto found = one.at("found").get<std::uint64_t>();
        if (resource && found != 0 && learned_.size() < most)
            learned_[{one.at("device").get<std::string>(), *resource}] = {found, one.value("credible", false)};
    }
} catch (const Json::exception&) {
}

Json DeviceCapacity::in_use() const {
    Json devices = Json::object();
    for (const auto& [place, amount] : in_use_)
        if (amount != 0) devices[place.first][std::string(info(place.second).name)] = amount;
    return devices;
}

}  // namespace rdmaquota
