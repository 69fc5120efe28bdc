// What a text of /proc/PID/stat says (proc_pid_stat(5)).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rdmaquota {

// Field 22, the start time in clock ticks since boot; 0 where the text has none. The command in field 2 may contain anything.
std::uint64_t start_time_in(std::string_view stat);

// The start time of the process or thread whose directory in /proc this is; 0 for one that is gone.
std::uint64_t start_time_of(const std::string& directory);

}  // namespace rdmaquota
