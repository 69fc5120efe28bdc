// What the comparison of kernel and ledger has to report about a process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/resource.hpp"
#include "tools/common/events/event_kinds.hpp"

namespace rdmaquota {

struct Difference {
    std::uint32_t pid = 0;
    std::string comm;  // not yet safe to print; empty when the process is gone
    std::string device;
    std::string tenant;  // its key
    std::string cgroup;  // its path; empty when it is not known
    bool has_slot = true;  // false: nothing of it is counted, since it goes around the library or cannot write the ledger
    struct Amount {
        Resource resource;
        std::uint64_t kernel, ledger;
    };
    std::vector<Amount> amounts;  // the resources of which one side has more
};

struct BypassReport {
    enum class Kind : std::uint8_t {
        bypass,        // the kernel has more: new, or twice of what was reported
        bypass_ended,  // no longer
        leak,          // the ledger has more
        leak_ended,
    };
    Kind kind;
    Difference difference;
};
SidecarKind kind_of(BypassReport::Kind) noexcept;

}  // namespace rdmaquota
