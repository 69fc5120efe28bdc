// What an ELF file tells the loader.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct ElfFile {
    bool dynamic = false;      // has a dynamic section, as every program but a static one and as static PIEs have
    bool interpreted = false;  // names a loader, as every program but a static one does
    std::string soname;
    std::string runpath;  // RUNPATH or the older RPATH, as written
    std::vector<std::string> needed;
    std::vector<std::string> versions;  // version nodes that it defines, without its own name
};

// Reads a 64-bit file of this machine's byte order. The file may be hostile: whatever it holds and however large it is,
// little is read and kept of it.
Result<ElfFile> read_elf(const std::string& path);

}  // namespace rdmaquota
