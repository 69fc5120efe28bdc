// The loader's answer to the unwinder of exceptions: in which shared object an address is, and where its unwind table is.
//
// libgcc asks the C library's _dl_find_object for it, which came with glibc 2.35 (dlfcn.h). The provider brings its own
// one, hidden, so that it also runs in images with glibc 2.34. It asks dl_iterate_phdr, as libgcc did before.
#pragma once

#include <dlfcn.h>

namespace rdmaquota::provider {

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// 0 when an object was found, which has a table then; else -1. Allocates nothing.
int find_object(void* address, dl_find_object* result) noexcept;
#endif

}  // namespace rdmaquota::provider
