// The loaded objects that have to do with libibverbs' private interface, by their version nodes: a libibverbs defines
// IBVERBS_PRIVATE_<PABI>, a provider needs it. Their names say nothing: wheels have a libibverbs of another name, and a
// process may have several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "provider/adoption/image.hpp"

namespace rdmaquota::provider {

struct VerbsObject {
    std::uintptr_t base;  // its load address, which no other object has
    std::string path;
    unsigned pabi;
    bool is_library;  // a libibverbs; else something that calls its private interface, as providers do
    Image image;
};

// Those in the caller's namespace (dlmopen(3)), in the loader's order. Throws only std::bad_alloc.
std::vector<VerbsObject> verbs_objects();

// The libibverbs' own two directories, which its build fixed and its texts tell: those of its configuration and of its providers. A
// text that is not found is the node's.
struct VerbsDirectories {
    std::string configuration, providers;
};
VerbsDirectories directories_of(const VerbsObject& library);
VerbsDirectories directories_in(const Image& image);

}  // namespace rdmaquota::provider
