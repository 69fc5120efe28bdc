// OFD locks as proof of life.
//
// An owner write-locks one byte of a lock file and keeps the file mapped. The lock belongs to the
// open file description, the mapping keeps that alive, and the kernel ends both when the last
// process that has the mapping exits or execs (fcntl(2), "Open file description locks"; mmap(2):
// a mapping holds a reference to the file). There is no descriptor for the host program to close.
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
    static Result<void> create(const std::string& path, unsigned mode);

    LockFile(LockFile&& other) noexcept;
    LockFile& operator=(LockFile&& other) noexcept;
    LockFile(const LockFile&) = delete;
    ~LockFile();

    // True when this open file now has the byte; false when another one has it.
    bool try_lock(std::uint32_t byte) const noexcept;
    void unlock(std::uint32_t byte) const noexcept;

    // A mapping that keeps the locks of this open file; nullptr when there is no memory.
    // End it with `let_go`.
    void* hold() const noexcept;
    static void let_go(void* hold) noexcept;

private:
    explicit LockFile(int fd) noexcept : fd_(fd) {}
    int fd_ = -1;
};

}  // namespace rdmaquota
