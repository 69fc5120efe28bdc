// How many objects a device can have: what its attributes tell, or less where it has refused one with less in use.
//
// That it refused is the word of a tenant's ledger, so the figures are for people. Limits in percent follow one only where the kernel
// itself counted at least half of what the device reports, so that a tenant that lies can at most halve them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquotad/node/node_usage.hpp"

namespace rdmaquota {

class DeviceCapacity {
public:
    // What a device tells; 0 when that is not known.
    using Told = std::function<std::uint64_t(const std::string& device, Resource resource)>;
    explicit DeviceCapacity(Told told) : told_(std::move(told)) {}

    // Takes note of a refused_by_device; others are left out, and so are bytes, which other things than the device bound.
    void add(const std::string& device, const Event& event);
    // Call it every second, with the devices of the machine.
    void look(const std::vector<std::string>& devices, const NodeUsage& usage);

    using Place = std::pair<std::string, Resource>;  // device
    // What limits may follow: what was found, where the kernel's count bears it out; else 0.
    std::uint64_t credible(const std::string& device, Resource resource) const;
    // What was found out so far: an array of objects with device, resource, `told` by the device (0: nothing), `found`, and whether that
    // is `credible`.
    Json learned() const;
    // Takes over what an earlier daemon's `learned` said; leaves out what is not of that form.
    void restore(const Json& learned);
    // What was in use at the last look: an object of devices, with a number for each resource in use.
    Json in_use() const;
    struct Figure {
        std::uint64_t in_use = 0, capacity = 0;  // as of the last look, on the whole node; capacity 0: not known
    };
    // Asks devices, each of which is opened for that once: not unless somebody wants to know.
    std::map<Place, Figure> all() const;

private:
    void learn(const NodeUsage& usage);

    static constexpr std::size_t most = 256;

    Told told_;
    std::map<Place, std::uint64_t> refused_;  // since the last look, with what was in use by the event
    struct Learned {
        std::uint64_t found = 0;
        bool credible = false;
    };
    std::map<Place, Learned> learned_;
    std::map<Place, std::uint64_t> in_use_;
};

}  // namespace rdmaquota
