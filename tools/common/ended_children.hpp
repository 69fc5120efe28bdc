// Children that are to end now, without waiting for them: one that sleeps in the kernel may take any time. One thread.
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace rdmaquota {

// Kills the process group that `child` leads, so with whatever it has started, and reaps it now or in a later call.
void end_child(pid_t child) noexcept;

// Reaps those that have ended since, and returns how many have not.
std::size_t unended_children() noexcept;

}  // namespace rdmaquota
