// Redirecting public functions of a loaded library, for every program that uses it, in whatever order things
// were loaded:
//
//   looked up from now on    by dlsym, dlvsym, a lazy binding or an object that is loaded later: the function's
//                            entry in the library's symbol table, in memory, tells the new address
//   bound before             by the loader, for objects that are linked to the library: their slots are changed
//   by the library itself    stays as it is; its lazy slots are bound first
//
// A pointer that a program fetched by dlsym before stays the real function. No file is touched.
#pragma once

#include <span>

#include "policy/result.hpp"

namespace rdmaquota::provider {

struct Redirection {
    const char* name;
    const char* version;      // the version node of the function that is meant, and of no other
    void* replacement;
    void* real = nullptr;     // what the library has; null where it has no such function
};

// `handle` is a dlopen handle. What the library lacks is left out. On an error some may be redirected and
// others not: those that stand first in the table are redirected first. Not while another thread loads or
// unloads libraries, which a constructor need not fear.
Result<void> redirect(void* handle, std::span<Redirection> table);

}  // namespace rdmaquota::provider
