// How much memory a process may pin, by the kernel's own bound (RLIMIT_MEMLOCK).
#pragma once

#include <cstdint>
#include <optional>

namespace rdmaquota {

struct MemoryLock {
    std::uint64_t limit;   // in bytes, the soft one; UINT64_MAX: none
    std::uint64_t pinned;  // by registered memory and the like
    bool exempt;           // has CAP_IPC_LOCK, to which the bound does not apply

    bool bounds() const noexcept { return !exempt && limit != UINT64_MAX; }
};

// Nothing where /proc does not say.
std::optional<MemoryLock> memory_lock(int pid);

}  // namespace rdmaquota
