// What bounds this process's memory, for people who look for the cause of an ENOMEM.
#pragma once

#include <string>

#include "shm/ledger/layout.hpp"

namespace rdmaquota::provider {

// Reads /proc and the files of the process's memory cgroups (version 2), and tries to map a page. Slow; throws std::bad_alloc.
ProcessBounds bounds_of_self(const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace rdmaquota::provider
