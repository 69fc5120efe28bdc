// The daemon's log: lines on standard error. Under systemd each begins with its priority, as
// sd-daemon(3) describes, so that journald files it.
#pragma once

#include <string_view>

namespace rdmaquota {

// Numbered as syslog(3).
enum class Priority { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };

// Prints `message` as one line, with everything escaped that is not safe to print.
void log(Priority priority, std::string_view message);

}  // namespace rdmaquota
