// How many objects a device can have: what its attributes tell, or less where it has refused one with less in use.
//
// That it refused is the word of a tenant's ledger, so the figures are for people, and nothing is decided by them. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "tools/common/json_fwd.hpp"
#include "tools/rdmaquotad/core/node_usage.hpp"

namespace rdmaquota {

class DeviceCapacity {
public:
    // What a device tells; 0 when that is not known.
    using Told = std::function<std::uint64_t(const std::string& device, Resource resource)>;
    explicit DeviceCapacity(Told told) : told_(std::move(told)) {}

    // Takes note of a refused_by_device; others are left out, and so are bytes, which other things than the device bound.
    void add(const std::string& device, const Event& event);
    // Call it every second.
    void look(const NodeUsage& usage);

    using Place = std::pair<std::string, Resource>;  // device
    // What was found out so far: an array of objects with device, resource, `told` by the device (0: nothing) and `found`.
    Json learned() const;
    // Of these devices, by device and name of the resource, what is known.
    std::map<std::pair<std::string, std::string>, std::uint64_t> all(const std::vector<std::string>& devices) const;

private:
    static constexpr std::size_t most = 256;

    Told told_;
    std::map<Place, std::uint64_t> refused_;  // since the last look, with what was in use by the event
    std::map<Place, std::uint64_t> learned_;
};

}  // namespace rdmaquota
