// Memory of the provider alone, on pages that hold nothing of the program's.
//
// Programs and libraries withhold whole pages around their buffers from forked children (MADV_DONTFORK: ibv_fork_init, UCX, Open
// MPI) or have them zeroed there (MADV_WIPEONFORK), and heap buffers share pages with other heap objects. What a fork handler of
// ours and a child's first call touch must not lie on such a page; so nothing of ours comes from the program's heap:
// provider/new.cpp makes operator new of this.
//
// Any thread; keeps no errno. The lock is to be held across fork, like those of Context::lock_all().
#pragma once

#include <cstddef>

namespace rdmaquota::provider::arena {

// `alignment`: a power of two. Null when there is no memory.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept;
void release(void* memory) noexcept;  // null is allowed

void lock() noexcept;
void unlock() noexcept;

}  // namespace rdmaquota::provider::arena
