// Redirecting public functions of a loaded library, for every caller in the process:
//
//   looked up from now on    by dlsym, dlvsym, a lazy binding or an object that is loaded later: found at the new
//                            address, by the function's entry in the library's symbol table in memory
//   bound before             by the loader, in objects that are linked to the library: their slots are changed
//   by the library itself    not redirected; its lazy slots are bound first
//
// A pointer that a program got by dlsym before stays that of the real function. No file is changed.
#pragma once

#include <cstdint>
#include <span>

#include "policy/result.hpp"
#include "provider/adoption/image.hpp"

namespace rdmaquota::provider {

struct Redirection {
    const char* name;
    const char* version;      // only the function of this version node is redirected
    void* replacement;
    void* real = nullptr;     // what the library has; null where it has no such function
};

// `handle` is a dlopen handle. Functions that the library lacks are left out. After an error some may be redirected and
// others not; the table's first go first. Call it only while no other thread loads or unloads libraries, as in a
// constructor. Where no object is linked to the library, so that no thread looks its functions up meanwhile, it writes through
// `memory` if that can be.
Result<void> redirect(MemoryFile& memory, void* handle, std::span<Redirection> table);

}  // namespace rdmaquota::provider
