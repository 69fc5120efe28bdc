#include "tools/rdmaquotad/bypass/slot_holders.hpp"

#include <sstream>

#include <fmt/core.h>
#include <sys/stat.h>

#include "shm/ledger/layout.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "tools/common/file_text.hpp"

namespace rdmaquota {
namespace {

constexpr auto trusted_for = std::chrono::seconds(5);

}  // namespace

// A line is "begin-end rights offset device inode path", the offset in hexadecimal.
std::vector<std::uint32_t> slots_in_maps(const std::string& maps, const std::set<ino_t>& lock_files) {
    std::vector<std::uint32_t> slots;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);) {
        if (line.find("/owners/") == line.npos) continue;
        std::istringstream words(line);
        std::string range, rights, device;
        std::uint64_t offset = 0;
        ino_t inode = 0;
        words >> range >> rights >> std::hex >> offset >> device >> std::dec >> inode;
        const auto slot = offset / LockFile::hold_stride;
        if (words && lock_files.contains(inode) && slot < owner_slots)
            slots.push_back(static_cast<std::uint32_t>(slot));
    }
    return slots;
}

void SlotHolders::follow(const std::string& ledger, std::uint64_t file_number) {
    if (file_number == file_number_) return;
    file_number_ = file_number;
    known_.clear();
    lock_files_.clear();
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) {
        struct stat status {};
        if (::stat(lock_path(ledger, slot).c_str(), &status) == 0) lock_files_.insert(status.st_ino);
    }
}

std::vector<std::uint32_t> SlotHolders::read(std::uint32_t pid) const {
    return slots_in_maps(file_text(fmt::format("/proc/{}/maps", pid)), lock_files_);
}

const std::vector<std::uint32_t>& SlotHolders::of(std::uint32_t pid, std::uint64_t openings) {
    auto& held = known_[pid];
    const auto now = Clock::now();
    if (!held.slots.empty() && held.openings == openings && now - held.read < trusted_for) return held.slots;
    held = {read(pid), openings, now};
    return held.slots;
}

void SlotHolders::keep_only(const std::set<std::uint32_t>& pids) {
    std::erase_if(known_, [&pids](const auto& entry) { return !pids.contains(entry.first); });
}

}  // namespace rdmaquota
