// Which processes hold which owner slots of a ledger, by the kernel's word: those that have the slot's byte of a lock
// file mapped (shm/lock_file.hpp), of which there may be several after a fork. The pid and start time in a slot are
// only its owner's word, in its own namespaces, and of a process that may have ended.
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
    using Holders = std::map<std::uint32_t, std::vector<std::uint32_t>>;  // pids by slot; no slot without one

    // The ledger that is meant from now on; it may be the same.
    void follow(const std::string& ledger, ino_t inode);

    // Who of the processes in `openings` holds which of the slots in `live`. `openings` says of each process, by its
    // pid in this namespace, how often it opened and closed devices; `claims`, how many slots were ever claimed. What a
    // process holds is read again when its openings are another number, while it holds nothing, every few seconds, and
    // with the others when a slot was claimed, which may be one that another held before. Processes whose maps take
    // long to read are read less often.
    Holders find(const std::map<std::uint32_t, std::uint64_t>& openings, const std::vector<std::uint32_t>& live,
                 std::uint64_t claims);

private:
    using Clock = std::chrono::steady_clock;
    struct Held {
        std::vector<std::uint32_t> slots;
        std::uint64_t openings = 0;
        Clock::time_point read, due;  // not read again before `due`
    };
    void read(std::uint32_t pid, std::uint64_t openings, bool again);

    ino_t inode_ = 0;
    std::set<ino_t> lock_files_;
    std::map<std::uint32_t, Held> known_;  // by pid
    std::uint64_t claims_ = 0;
};

// The slots of the mappings in a text of /proc/PID/maps that are of these lock files.
std::vector<std::uint32_t> slots_in_maps(const std::string& maps, const std::set<ino_t>& lock_files);

}  // namespace rdmaquota
