// What is kept of a look at a ledger: sums for each device, and who holds which slot. A copy of the whole ledger takes
// up to 65 MiB, and there are many.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "shm/ledger/ledger_copy.hpp"
#include "tools/rdmaquotad/kernel/netlink_snapshot.hpp"

namespace rdmaquota {

struct DeviceFigures {
    std::string device;  // not yet safe to print
    ResourceCounts usage{}, peak{};
    std::array<Ledger::Delays, rate_count> delays{};  // since the ledger was created
};

struct Figures {
    std::vector<DeviceFigures> devices;  // those that the ledger names
    std::size_t processes = 0;           // live slots

    std::uint64_t usage(const std::string& device, Resource resource) const noexcept;
};

Figures figures_of(const LedgerCopy& ledger);

// A live slot, and what is charged to it on devices of the machine.
struct SlotUse {
    std::uint32_t slot;
    Identity identity;  // by the owner's own word
    struct OnDevice {
        std::string device;
        ResourceCounts used;
    };
    std::vector<OnDevice> devices;  // with any use
};

// Devices that are not among `devices` anyone may have invented. Beyond `most_uses` figures of a device, which only a
// falsified ledger has, slots are listed without any.
inline constexpr std::size_t most_uses = 16'384;
std::vector<SlotUse> slot_uses(const LedgerCopy& ledger, const std::set<std::string>& devices);

}  // namespace rdmaquota
