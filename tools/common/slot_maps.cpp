#include "tools/common/slot_maps.hpp"

#include <sstream>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "shm/ledger/layout.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {

void add_lock_files(LockFiles& files, const std::string& path, std::uint32_t number) {
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) {
        struct stat status {};
        if (::stat(lock_path(path, slot).c_str(), &status) == 0) files[{status.st_dev, status.st_ino}] = number;
    }
}

// A line is "begin-end rights offset device inode path", the offset in hexadecimal. The offset shows the slot's number
// within the whole ledger.
std::vector<LedgerSlot> slots_in_maps(const std::string& maps, const LockFiles& lock_files) {
    std::vector<LedgerSlot> slots;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("/owners/") == line.npos) continue;
        std::istringstream words(line);
        std::string range, rights;
        std::uint64_t offset = 0;
        unsigned major = 0, minor = 0;
        char colon = 0;
        ino_t inode = 0;
        words >> range >> rights >> std::hex >> offset >> major >> colon >> minor >> std::dec >> inode;
        const auto slot = offset / LockFile::hold_stride;
        const auto file = lock_files.find({makedev(major, minor), inode});
        if (words && file != lock_files.end() && slot < owner_slots)
            slots.push_back({file->second, static_cast<std::uint32_t>(slot)});
    }
    return slots;
}

}  // namespace rdmaquota
