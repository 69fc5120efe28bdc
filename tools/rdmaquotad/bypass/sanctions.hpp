// What is done about a bypass beyond telling and charging it: the kernel bounds its cgroup, or its processes are ended.
//
// One thread. Nothing here logs; what is to be told is returned.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shm/policy/policy_segment.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"
#include "tools/rdmaquotad/bypass/finding.hpp"
#include "tools/rdmaquotad/bypass/process_names.hpp"

namespace rdmaquota {

// A process that takes part in a bypass, in the sidecar's pid namespace.
struct Suspect {
    std::uint32_t pid = 0;
    std::string comm;
    std::uint64_t start_time = 0;  // in clock ticks since boot; 0: it is gone
    bool has_slot = false;         // so that its other objects are charged
};

class Sanctions {
public:
    using ProcessDevice = std::pair<std::uint32_t, std::string>;  // process and device

    explicit Sanctions(Backstop& backstop) : backstop_(backstop) {}

    // Both are to be called again and again as long as the bypass goes on; what is done already is not done or told
    // twice. Who started before `since` (in ticks; UINT64_MAX: not known) may be charged in the ledger that there was
    // before, or nothing was charged then, and is spared.

    // The cgroup of the difference; not while all are spared.
    std::optional<Finding> limit(const ProcessDevice& place, Difference difference, const std::vector<Suspect>& suspects,
                                 std::uint64_t since, const PolicySegment& policy);
    // Those of them who have no slot, or else the one of the difference.
    std::vector<Finding> kill(const ProcessDevice& place, const Difference& difference, const std::vector<Suspect>& suspects,
                              std::uint64_t since);

    // The bypass is over, or the policy asks for something else.
    void end(const ProcessDevice& place);

private:
    using Bound = std::pair<std::string, std::string>;  // cgroup and device
    struct Activity {
        std::string failure;         // of what was tried last, as it was told
        std::optional<Bound> limited;
        std::optional<Bound> bound;  // by us, because of this bypass
        std::set<LedgerName> killed;
    };
    bool bounded(const Bound& bound) const;
    void let_go(Activity& activity);
    static std::optional<Finding> kept(Activity& activity, Difference difference, const std::string& why);
    Result<void> bound(Activity& activity, const Bound& place, const PolicySegment& policy);

    Backstop& backstop_;
    std::map<ProcessDevice, Activity> deeds_;
};

}  // namespace rdmaquota
