// operator new and delete of this shared object, which exports none: see provider/host/arena.hpp. libstdc++'s other forms call these.
#include <new>

#include "provider/host/arena.hpp"

namespace arena = rdmaquota::provider::arena;

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
    void* memory = arena::allocate(bytes, alignment);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<std::size_t>(alignment)); }
void operator delete(void* memory) noexcept { arena::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { arena::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { arena::release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { arena::release(memory); }
