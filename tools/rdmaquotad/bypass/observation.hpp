// What kernel and ledgers say at one look. They are read one after the other.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/rdmaquotad/bypass/slot_holders.hpp"
#include "tools/rdmaquotad/node/figures.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

using ProcessDevice = std::pair<std::uint32_t, std::string>;

// The ledger of one tenant, that has owners by its own word, or by the kernel's.
struct ObservedLedger {
    std::string tenant;    // its key
    std::uint32_t number;  // as in LedgerSlot
    bool fresh;            // read at this look, after the kernel
    const std::vector<SlotUse>& slots;
};

struct Observation {
    std::chrono::steady_clock::time_point at;
    const std::vector<KernelUse>& uses;
    std::array<bool, resource_count> known;  // by index(Resource): whether `uses` has it
    bool attached;                           // `uses` comes from the program in the kernel, not from netlink alone
    // Of processes that started at this time or later, `uses` has everything; clock ticks since boot.
    std::uint64_t complete_since;

    std::vector<ObservedLedger> ledgers;
    SlotHolders::Held held;          // by processes in `uses`
    std::set<std::uint32_t> unread;  // processes of which that is not known, as in SlotHolders
    // Programs charge these ledgers by default. Otherwise processes without a slot in one are not their concern.
    bool everyone;
    // The tenant of a process without a slot, and whether processes in a tenant are charged at all.
    std::function<std::string(std::uint32_t pid)> tenant_of;
    std::function<bool(const std::string& tenant)> charges;
};

}  // namespace rdmaquota
