// What was found when kernel and ledger were compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/resource.hpp"

namespace rdmaquota {

struct Difference {
    std::uint32_t pid = 0;
    std::string comm;  // not yet safe to print; empty when the process is gone
    std::string device;
    std::string cgroup;  // its path; empty when it is not known
    struct Amount {
        Resource resource;
        std::uint64_t kernel, ledger;
    };
    std::vector<Amount> amounts;  // the resources of which one has more
};

struct Finding {
    enum class Kind : std::uint8_t {
        bypass,         // began, or grew to twice of what was told
        bypass_ended,   // no longer there
        leak, leak_ended,
    };
    Kind kind;
    Difference difference;
};
std::string_view name(Finding::Kind) noexcept;  // one word

}  // namespace rdmaquota
