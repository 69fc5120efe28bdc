// Finds the processes of a run that open an RDMA device and are not held by the run's limits.
//
// The provider takes a slot in the run's ledger for a process that opens a device, so a process that has the device open and never
// gets a slot is not held. The kernel reports each opening of a device file (inotify(7)), but not by whom: at each report, the
// descendants of this process are looked through. A process that has the device open without a slot may be about to get one,
// so it is judged when it has had the device for some seconds, closed it, or ended. What it never can be is accused by mistake: it
// was seen with an open device, and every slot that was claimed since was claimed by another process.
//
// Not found: a process that opens and closes a device before this process runs again, and a process whose descriptors this user may
// not read (setuid).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "shm/ledger/ledger.hpp"
#include "tools/common/process/slot_maps.hpp"

namespace rdmaquota {

class UnheldProcesses {
public:
    // `directory` is the run's quota directory. Call it before the program starts.
    explicit UnheldProcesses(const std::string& directory);
    UnheldProcesses(const UnheldProcesses&) = delete;
    ~UnheldProcesses();

    // Readable when a device was opened; -1 where this cannot be known.
    int descriptor() const noexcept { return notices_; }

    // Call it when the descriptor is readable, and after as many milliseconds as it returned at last; -1: no need to.
    int look();

    // Call it when the program has ended. The processes that were not held, a line for each program.
    std::vector<std::string> conclude();

private:
    struct Process {
        std::uint32_t pid;
        std::uint64_t start;
        auto operator<=>(const Process&) const = default;
    };
    struct Suspect {
        Process noted;             // as it calls itself in the ledger: a container has pids of its own
        std::string text;          // the program, the device and the library
        std::uint64_t unseen = 0;  // claims that nobody saw, as of the first look
        unsigned looks = 0;
        bool open = false;  // as of this look
    };
    void watch_devices();
    void read_claims();
    void look_at(std::uint32_t pid);
    void judge(bool ended);

    std::string ledger_path_;
    Result<Ledger> ledger_;
    LockFiles lock_files_;
    int notices_ = -1;
    std::vector<std::uint32_t> claims_;  // of each slot, as of the last look
    std::uint64_t unseen_ = 0;           // claims of which the owner was overwritten between two looks
    std::set<Process> charged_;          // all that were seen to own a slot, by what they call themselves
    std::map<Process, Suspect> suspects_;
    std::map<std::uint32_t, std::uint64_t> settled_;  // start by pid: those that need no look any more
    std::vector<std::string> unheld_;
};

}  // namespace rdmaquota
