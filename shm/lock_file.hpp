// OFD locks as proof of life.
//
// An owner write-locks one byte of a lock file and keeps the file mapped. The lock belongs to the
// open file description, the mapping keeps that alive, and the kernel ends both when the last
// process that has the mapping exits or execs (fcntl(2), "Open file description locks"; mmap(2):
// a mapping holds a reference to the file). There is no descriptor for the host program to close.
//
// Slot i has the bytes 2i and 2i+1. Its owner locks the first; a process that reaps the slot, or checks whether it can
// be reaped or claimed, locks both. So the length of a conflicting lock tells whose it is, and a slot that is only
// being checked is never taken for alive.
//
// One file per 64 owners: the kernel searches a file's locks one by one (fs/locks.c), and testing
// 4,000 owners of one file took 35 ms where 64 files take 2 ms.
#pragma once

#include <cstdint>
#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// An open lock file. Move-only; closes its descriptor when destroyed, which drops the locks taken
// through it unless `hold` keeps them.
class LockFile {
public:
    static Result<LockFile> open(const std::string& path);

    LockFile(LockFile&& other) noexcept;
    LockFile& operator=(LockFile&& other) noexcept;
    LockFile(const LockFile&) = delete;
    ~LockFile();

    static constexpr std::uint64_t hold_stride = 64 * 1024;  // whole pages, on any machine

    enum class Holder : std::uint8_t { nobody, owner, reaper };
    // Who holds a lock of this slot through another open file.
    Holder holder(std::uint32_t slot) const noexcept;

    // True when this open file now has the slot, as a reaper does.
    bool try_reap(std::uint32_t slot) const noexcept;
    // Makes a reaper the owner: gives up its second byte.
    void own(std::uint32_t slot) const noexcept;
    void unlock(std::uint32_t slot) const noexcept;

    // A mapping that keeps the locks of this open file; nullptr when there is no memory. Its offset in the file,
    // `hold_stride` bytes per slot, shows the slot in /proc/PID/maps. End it with `let_go`.
    void* hold(std::uint32_t slot) const noexcept;
    static void let_go(void* hold) noexcept;

    // Another mapping of what this process has mapped for the slot already; nullptr where it has not, or cannot tell. The lock lives
    // until both are ended. Throws only std::bad_alloc.
    void* hold_again(std::uint32_t slot) const;

private:
    explicit LockFile(int fd) noexcept : fd_(fd) {}
    int fd_ = -1;
};

}  // namespace rdmaquota
