// Which owner slots of ledgers a process has, by the kernel's word: those whose byte of a lock file it has mapped
// (shm/lock_file.hpp).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace rdmaquota {

// A slot of one of the ledgers, which the reader numbers.
struct LedgerSlot {
    std::uint32_t ledger;
    std::uint32_t slot;
    auto operator<=>(const LedgerSlot&) const = default;
};

// The lock files of ledgers, by device and inode, since each ledger may have a file system of its own; and the ledger of
// each.
using LockFiles = std::map<std::pair<dev_t, ino_t>, std::uint32_t>;

// Adds those of the ledger at `path`, or that of one slot.
void add_lock_file(LockFiles& files, const std::string& path, std::uint32_t slot, std::uint32_t number);
void add_lock_files(LockFiles& files, const std::string& path, std::uint32_t number);

// The slots of the mappings in a text of /proc/PID/maps that are of these lock files, each once, and no more than
// `most_slots_of_process`: a process has one for each ledger, and may map anything.
inline constexpr std::size_t most_slots_of_process = 256;
std::vector<LedgerSlot> slots_in_maps(const std::string& maps, const LockFiles& lock_files);

}  // namespace rdmaquota
