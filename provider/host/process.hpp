// Which process this is. The pid alone does not tell: the child of a pid 1 that forks after unshare(CLONE_NEWPID) is
// pid 1 too. The number of forks alone does not either: clone(2) and vfork run no fork handlers.
#pragma once

#include <sys/types.h>

namespace rdmaquota::provider {

struct ProcessId {
    pid_t pid = 0;
    unsigned forks = 0;  // from the process that loaded this library down to this one
    bool operator==(const ProcessId&) const = default;
};

// A system call. Thread-safe.
ProcessId this_process() noexcept;

}  // namespace rdmaquota::provider
