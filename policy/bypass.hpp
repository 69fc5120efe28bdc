// What the sidecar does about a process that has more in the kernel than it was charged for.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

enum class Bypass : std::uint32_t {
    report,  // say so
    charge,  // and enter it in the ledger, so that what others get is right
    limit,   // and bound its cgroup by the kernel's rdma.max, so that it cannot grow
    kill,    // and end the process
};

// Names as in the policy file; the error lists them.
std::string_view name(Bypass) noexcept;
Result<Bypass> parse_bypass(std::string_view);

}  // namespace rdmaquota
