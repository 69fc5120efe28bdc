// Whether kernel and ledger say the same of each process, and what is done when they do not.
//
// The two are read one after the other while programs run, so a difference counts only when one side had more in
// several looks in a row than the other in any of them; and while anything of the process changes from look to look,
// than the other in the last seconds. Sooner known is who has no slot at all: the provider charges before it opens a
// device and gives back after it closed it, so that one which is open in two looks, and not closed between them, needs
// a slot in the first. Processes that use one another's device
// contexts (after a fork, or when a descriptor was passed on) are compared together: the ledger charges who the
// provider's account belongs to, the kernel who makes the system call.
//
//   kernel has more: a bypass. Reported.
//   ledger has more: a leak. What the dead left is given back by reaping and reconciling; a living process that
//                    was charged for more than it has is reported.
//
// One thread. Nothing here logs; what is to be told is returned.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "shm/policy/policy_segment.hpp"
#include "tools/rdmaquotad/bypass/finding.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"
#include "tools/rdmaquotad/bypass/sample_window.hpp"
#include "tools/rdmaquotad/bypass/process_names.hpp"
#include "tools/rdmaquotad/bypass/slot_holders.hpp"

namespace rdmaquota {

// What is compared.
struct Observation {
    const KernelWatch& watch;
    const std::vector<KernelUse>& uses;  // read from `watch` just before
    Ledger& ledger;
    ino_t ledger_inode;
    const PolicySegment& policy;
    const std::set<std::string>& devices;  // of this machine
    // Programs charge this ledger by default. Otherwise those who have no slot in it are not its concern.
    bool everyone;
};

class BypassDetector {
public:
    // Call `look` this often: a bypass is told after three looks; and twice when a device is opened.
    static constexpr unsigned look_interval_ms = 200;

    std::vector<Finding> look(const Observation& observation);

    std::vector<Difference> bypasses() const;  // at present
    std::uint64_t corrected() const noexcept { return corrected_; }  // gates, so far

private:
    using ProcessDevice = std::pair<std::uint32_t, std::string>;  // process and device
    struct Watched {
        SampleWindow looks;
        Difference difference;  // of the last look; without amounts
        ResourceCounts in_kernel{}, in_ledger{};
        std::uint64_t activity = 0;  // objects made and destroyed, as far as seen
        std::uint64_t openings = 0;  // and closings, as far as seen
        bool partial = false, slotless = false;
        std::uint64_t told = 0;  // sum of the excess that was told; 0: nothing was
        bool leak_told = false;
        bool seen = false;
    };
    class Groups;
    struct Side;
    using Sides = std::map<ProcessDevice, Side>;
    using Slots = std::map<std::uint32_t, std::vector<std::uint32_t>>;  // the processes of each slot 

    Slots assign(const Observation& observation, Groups& groups);
    Sides read(const Observation& observation);
    void add_kernel(Side& side, const KernelUse& use, bool has_slot);
    void add_ledger(Sides& sides, const Slots& slots, Groups& groups, const Observation& observation);
    void compare(const ProcessDevice& place, const Side& side, const Observation& observation);
    Difference difference(const Watched& watched, bool bypass) const;
    void judge(Watched& watched, std::vector<Finding>& found);
    void correct_gates(Ledger& ledger);

    ProcessNames names_;
    SlotHolders holders_;
    std::map<ProcessDevice, Watched> watched_;
    std::map<std::pair<std::uint32_t, Resource>, unsigned> loose_;  // gates that differed in looks in a row
    std::uint64_t corrected_ = 0;
};

}  // namespace rdmaquota
