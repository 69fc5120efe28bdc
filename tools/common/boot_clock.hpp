// Times in clock ticks since boot, as processes' start times in /proc/PID/stat (proc_pid_stat(5), field 22).
#pragma once

#include <cstdint>

namespace rdmaquota {

std::uint64_t ticks_since_boot();

// CLOCK_BOOTTIME.
std::uint64_t boot_ns();

}  // namespace rdmaquota
