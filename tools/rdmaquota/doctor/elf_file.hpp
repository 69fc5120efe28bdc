// What an ELF file says of itself to the loader.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct ElfFile {
    bool dynamic = false;      // has a dynamic section: not statically linked (a static PIE has one, too)
    bool interpreted = false;  // asks for a loader: a program that is not static
    std::string soname;
    std::string runpath;  // RUNPATH or the older RPATH, as written
    std::vector<std::string> needed;
    std::vector<std::string> versions;  // that it defines, without its own name
};

// Reads a 64-bit file of this machine's byte order. Whatever the file holds, this reads only within it.
Result<ElfFile> read_elf(const std::string& path);

}  // namespace rdmaquota
