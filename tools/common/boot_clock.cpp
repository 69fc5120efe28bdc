#include "tools/common/boot_clock.hpp"

#include <ctime>

#include <unistd.h>

namespace rdmaquota {
std::uint64_t ticks_since_boot() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const auto ticks = sysconf(_SC_CLK_TCK);
    return static_cast<std::uint64_t>(now.tv_sec * ticks + now.tv_nsec * ticks / 1'000'000'000);
}

std::uint64_t boot_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace rdmaquota
