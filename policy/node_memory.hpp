// How much memory the node has.
#pragma once

#include <cstdint>

#include <sys/sysinfo.h>

namespace rdmaquota {

// In bytes; 0: not known.
inline std::uint64_t node_memory() noexcept {
    struct sysinfo about {};
    return ::sysinfo(&about) == 0 ? std::uint64_t{about.totalram} * about.mem_unit : 0;
}

}  // namespace rdmaquota
