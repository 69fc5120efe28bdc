// What kernel and ledgers have for each group of processes on each device. What a group has in several tenants is added
// up: the kernel does not know in which of them an object was charged.
//
// A slot belongs to the processes that have its lock file mapped, by the kernel's word (slot_holders.hpp). The pid and
// start time in the slot are its owner's word, and those of two processes can be the same: each pid namespace has a
// pid 1. Slots that no process with kernel objects holds stand for themselves, in the name that they have.
//
// A process that ends loses its memory, and with it its slots, before the kernel closes its files; and its files live on
// in the children that it forked. So what a process without memory has made belongs with the slots that have its pid, if
// there still are any, and else is `ending`, for a time.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/rdmaquotad/bypass/observation.hpp"
#include "tools/rdmaquotad/bypass/process_groups.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"

namespace rdmaquota {

struct GroupCounts {
    // The process in whose name a difference is reported: of those without a slot, if there are any, the one with most
    // objects.
    std::uint32_t pid = 0;
    std::string comm;
    std::uint64_t pid_objects = 0;
    bool pid_has_slot = true;

    std::string tenant;                 // of its slot, else of that process by the node's matches
    bool has_slot = false;              // one of its processes has
    std::uint64_t oldest = UINT64_MAX;  // start time
    bool partial = false;               // as in KernelUse, of any of its uses
    // The same, or what one of its processes holds, or has in a ledger, was not read at this look.
    bool stale = false;
    std::uint64_t driver_objects = 0;
    std::uint64_t activity = 0;  // objects made and destroyed
    std::uint64_t openings = 0;  // devices opened and closed
    ResourceCounts kernel{}, ledger{};
    ResourceCounts ending{};  // of `kernel`, what will soon be gone and need not be charged any more
};

// How often each process opened and closed devices, by pid.
std::map<std::uint32_t, std::uint64_t> openings_by_process(const std::vector<KernelUse>& uses);

class GroupReader {
public:
    // More groups that the kernel knows nothing of are left out: anyone may invent any number.
    static constexpr std::size_t most_unknown = 1024;
    // The kernel needs a while to destroy 100,000 memory regions. What is there longer will stay.
    static constexpr std::chrono::seconds longest_end{60};

    // Groups are named after a process, or 0x80000000 and a number for a slot. Left out are groups in a tenant that is
    // not charged.
    std::map<ProcessDevice, GroupCounts> read(const Observation& observation);

private:
    using Counts = std::map<ProcessDevice, GroupCounts>;
    using Keepers = std::map<LedgerSlot, std::vector<std::uint32_t>>;  // the processes that hold each live slot

    void find_ending(const Observation& observation, const Keepers& keepers);
    void add_ending(const Observation& observation, Keepers& keepers) const;
    void add_kernel(GroupCounts& counts, const KernelUse& use, bool has_slot, std::chrono::steady_clock::time_point now);
    void add_slots(Counts& counts, const Observation& observation, const Keepers& keepers, ProcessGroups& groups);
    void add_slot(Counts& counts, std::uint32_t group, const SlotUse& slot, const ObservedLedger& ledger);
    void leave_out(Counts& counts, const Observation& observation);

    ProcessInfoCache processes_;
    std::map<std::uint32_t, std::chrono::steady_clock::time_point> ending_;  // since when, by pid
    std::size_t unknown_ = 0;                                                // groups of this look
    std::set<std::uint32_t> uncharged_;                                      // groups with a slot in such a tenant
};

}  // namespace rdmaquota
