// Which processes hold which owner slots of the ledgers, by the kernel's word: those that have the slot's byte of a lock
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
#include <utility>
#include <vector>

#include <sys/types.h>

#include "tools/common/process/slot_maps.hpp"

namespace rdmaquota {

class SlotHolders {
public:
    using Held = std::map<std::uint32_t, std::vector<LedgerSlot>>;  // by pid; no process without a slot

    // The ledgers that are meant from now on: their paths by number. Numbers are never used again.
    void follow(const std::map<std::uint32_t, std::string>& ledgers);

    // What the processes in `openings` hold. `openings` says of each process, by its pid in this namespace, how often it
    // opened and closed devices; `claims`, how many slots were ever claimed. What a process holds is read again when its
    // openings are another number, when a slot was claimed, which may be one that another held before, and every few
    // seconds. One look reads for a tenth of a second at most, and the next goes on where it ended. Processes whose maps
    // take long to read are read less often.
    Held find(const std::map<std::uint32_t, std::uint64_t>& openings, std::uint64_t claims);

    // Processes of which the last `find` does not know what they hold: their maps, which take long to read, or for which there was no
    // time, were last read before they opened or closed a device. In all others a slot was looked for after they had opened theirs, and
    // a slot is claimed before that.
    const std::set<std::uint32_t>& unread() const noexcept { return unread_; }

    // The ledgers in which a process held a slot at the last look.
    std::set<std::uint32_t> ledgers_of(std::uint32_t pid) const;

private:
    using Clock = std::chrono::steady_clock;
    struct Known {
        std::vector<LedgerSlot> slots;
        std::uint64_t openings = 0, claims = 0, followings = 0;  // as of the last reading
        Clock::time_point read, due;  // not read again before `due`
    };
    void read(std::uint32_t pid, std::uint64_t openings, std::uint64_t claims);

    std::set<std::uint32_t> followed_;
    LockFiles lock_files_;
    std::map<std::uint32_t, Known> known_;  // by pid
    std::set<std::uint32_t> unread_;
    std::uint64_t followings_ = 0;  // how often a ledger came
    std::uint32_t next_ = 0;        // from this pid on the next look reads
};

}  // namespace rdmaquota
