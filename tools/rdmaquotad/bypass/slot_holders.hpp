// Which owner slots of a ledger a process keeps, by the kernel's word: those whose lock file it has mapped
// (shm/lock_file.hpp). What a slot itself says, a pid and a start time, is its owner's word, in its own namespaces, and
// of a parent that has ended when a forked child has taken over what it held.
//
// One thread. Reading another user's maps needs CAP_SYS_PTRACE (proc_pid_maps(5)); without it nothing is found.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rdmaquota {

class SlotHolders {
public:
    // The ledger that is meant from now on; it may be the same.
    void follow(const std::string& ledger, std::uint64_t file_number);

    // Of a process of this pid namespace. Read again when `openings` (how often it opened and closed devices) is
    // another, while there are none, and every few seconds.
    const std::vector<std::uint32_t>& of(std::uint32_t pid, std::uint64_t openings);
    void keep_only(const std::set<std::uint32_t>& pids);

private:
    using Clock = std::chrono::steady_clock;
    struct Held {
        std::vector<std::uint32_t> slots;
        std::uint64_t openings = 0;
        Clock::time_point read;
    };
    std::vector<std::uint32_t> read(std::uint32_t pid) const;

    std::uint64_t file_number_ = 0;
    std::set<ino_t> lock_files_;
    std::map<std::uint32_t, Held> known_;
};

// The slots of the mappings in a text of /proc/PID/maps that are of these lock files.
std::vector<std::uint32_t> slots_in_maps(const std::string& maps, const std::set<ino_t>& lock_files);

}  // namespace rdmaquota
