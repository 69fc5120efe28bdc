#include "tools/rdmaquotad/bypass/slot_holders.hpp"

#include <sstream>
#include <utility>

#include <sys/stat.h>

#include "shm/ledger/layout.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "tools/common/file_text.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"

namespace rdmaquota {
namespace {

constexpr auto trusted_for = std::chrono::seconds(5);
constexpr auto cheap = std::chrono::milliseconds(2);
constexpr int rest = 20;  // times as long as it took

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

void SlotHolders::follow(const std::string& ledger, ino_t inode) {
    if (inode == inode_) return;
    inode_ = inode;
    known_.clear();
    lock_files_.clear();
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) {
        struct stat status {};
        if (::stat(lock_path(ledger, slot).c_str(), &status) == 0) lock_files_.insert(status.st_ino);
    }
}

void SlotHolders::read(std::uint32_t pid, std::uint64_t openings, bool again) {
    auto& held = known_[pid];
    const auto begin = Clock::now();
    if (begin < held.due) return;
    if (!again && !held.slots.empty() && held.openings == openings && begin - held.read < trusted_for) return;
    held.slots = slots_in_maps(file_text(proc_directory_with_memory(pid) + "/maps"), lock_files_);
    held.openings = openings;
    held.read = Clock::now();
    const auto took = held.read - begin;
    held.due = took > cheap ? held.read + rest * took : held.read;
}

SlotHolders::Holders SlotHolders::find(const std::map<std::uint32_t, std::uint64_t>& openings,
                                       const std::vector<std::uint32_t>& live, std::uint64_t claims) {
    std::erase_if(known_, [&](const auto& entry) { return !openings.contains(entry.first); });
    const bool again = std::exchange(claims_, claims) != claims;
    for (const auto& [pid, count] : openings) read(pid, count, again);
    const std::set<std::uint32_t> wanted(live.begin(), live.end());
    Holders holders;
    for (const auto& [pid, held] : known_)
        for (const auto slot : held.slots)
            if (wanted.contains(slot)) holders[slot].push_back(pid);
    return holders;
}

}  // namespace rdmaquota
