#include "tools/common/boot_clock.hpp"

#include <algorithm>

#include <unistd.h>

namespace rdmaquota {
namespace {

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

std::int64_t now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return nanoseconds(time);
}

std::uint64_t in_ticks(std::int64_t since_boot) {
    const auto ticks = static_cast<std::int64_t>(sysconf(_SC_CLK_TCK));
    const auto time = std::max<std::int64_t>(since_boot, 0);
    return static_cast<std::uint64_t>(time / 1'000'000'000 * ticks + time % 1'000'000'000 * ticks / 1'000'000'000);
}

}  // namespace

std::uint64_t ticks_since_boot() { return in_ticks(now(CLOCK_BOOTTIME)); }

std::uint64_t ticks_at(const timespec& wall) {
    return in_ticks(nanoseconds(wall) - (now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME)));
}

}  // namespace rdmaquota
