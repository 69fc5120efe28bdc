// Opens a file of a ledger for root's tools, where others may have put links.
//
// A tenant's directory may be mounted in a container, whose root can replace everything in it: by a link, a tool would be
// led to any file of the node.
#pragma once

#include <string>

namespace rdmaquota {

// Follows no link in the last four parts of the path, those from a tenant's `here` on, and opens directories and regular
// files with one name only. What O_CREAT makes has the mode 0600. -1 with errno on failure: ELOOP for a link, EINVAL for
// anything else. Never waits.
int open_inside(const std::string& path, int flags) noexcept;

// Opens the directory `path` below `root`, for its name only (O_PATH), and follows no link in `path`: below another
// process's root, one would be followed from this process's. `root` may be /proc/PID/root. -1 with errno on failure.
int open_directory_inside(const std::string& root, const std::string& path) noexcept;

}  // namespace rdmaquota
