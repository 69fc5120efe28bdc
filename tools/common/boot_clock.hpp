// Times as /proc/PID/stat tells when a process started: in clock ticks since boot (proc_pid_stat(5), field 22).
#pragma once

#include <cstdint>

namespace rdmaquota {

std::uint64_t ticks_since_boot();

}  // namespace rdmaquota
