// Finds processes that have more in the kernel than they were charged for (a bypass), or were charged for more than
// they have (a leak). Leaks of the dead are uncharged by reaping and reconciling; those of the living are reported.
//
// Kernel and ledger are read one after the other while programs run. So a difference counts only when one side had
// more in several looks in a row than the other in any of them, or, while anything of the process changes from look to
// look, than the other in the last seconds. A process without a slot is flagged earlier: the provider charges before it
// opens a device and uncharges after it closed it, so a context that is open in two looks, with none opened or closed
// between them, needs a slot in the first. A process that has ended is given a minute to be gone from the kernel.
// Processes that use one another's device contexts or slots, after a fork or when a descriptor was passed on, are
// compared together: the ledger charges the account's owner, the kernel the process that makes the system call.
//
// One thread. Nothing here logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/rdmaquotad/bypass/bypass_report.hpp"
#include "tools/rdmaquotad/bypass/group_counts.hpp"
#include "tools/rdmaquotad/bypass/observation.hpp"
#include "tools/rdmaquotad/bypass/sample_window.hpp"

namespace rdmaquota {

class BypassDetector {
public:
    // Call `look` this often, and twice when a device is opened. A bypass is reported after three looks.
    static constexpr unsigned look_interval_ms = 200;

    // At most 32 reports; the others come with the next look. What was reported of a process ends once its tenant is not
    // charged any more.
    std::vector<BypassReport> look(const Observation& observation);

    std::vector<Difference> bypasses() const;  // at present

private:
    struct Watched {
        SampleWindow window;
        Difference difference;  // of the last look; without amounts
        ResourceCounts kernel{}, ledger{};
        std::uint64_t activity = 0, openings = 0;
        bool partial = false, slotless = false;
        std::uint64_t reported = 0;  // sum of the excess that was reported; 0: nothing was
        bool leak_reported = false;
        unsigned bypass_waited = 0, leak_waited = 0;  // looks for which a report was put off
        bool seen = false;
    };

    static void add_look(Watched& watched, const GroupCounts& counts, const Observation& observation);
    static void add_amounts(Watched& watched, const GroupCounts& counts, const Observation& observation);
    static Difference difference(const Watched& watched, bool bypass);
    static void judge(Watched& watched, std::vector<BypassReport>& reports);
    static bool is_due(unsigned& waited, bool differs, bool at_rest);

    GroupReader groups_;
    std::map<ProcessDevice, Watched> watched_;
};

}  // namespace rdmaquota
