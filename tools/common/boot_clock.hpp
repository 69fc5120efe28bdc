// Times as /proc/PID/stat tells when a process started: in clock ticks since boot (proc_pid_stat(5), field 22).
#pragma once

#include <cstdint>
#include <ctime>

namespace rdmaquota {

std::uint64_t ticks_since_boot();

// Of a time of the wall clock; 0 before the boot.
std::uint64_t ticks_at(const timespec& wall);

}  // namespace rdmaquota
