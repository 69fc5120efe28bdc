// Child processes that work for this one and never outlive it. Nobody waits for their end: one that sleeps in the kernel may take
// any time. One thread.
#pragma once

#include <cstddef>
#include <functional>

#include <sys/types.h>

namespace rdmaquota {

// Forks. The child leads a process group, is killed when this process ends, calls `work` and exits with 1 where that returns.
// Returns the child's pid, -1 where there can be none.
pid_t start_child(const std::function<void()>& work);

// Kills the process group that `child` leads, so with whatever it has started, and reaps it now or in a later call.
void end_child(pid_t child) noexcept;

// Reaps those that have ended since, and returns how many have not.
std::size_t unended_children() noexcept;

}  // namespace rdmaquota
