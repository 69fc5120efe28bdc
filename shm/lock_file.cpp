#include "shm/lock_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// The mapping is never read or written, so the file may be empty.
constexpr std::size_t hold_bytes = 4096;

constexpr off_t owner_bytes = 1;
constexpr off_t reaper_bytes = 2;

struct flock range(short type, std::uint32_t slot, off_t bytes) noexcept {
    return {.l_type = type, .l_whence = SEEK_SET, .l_start = off_t{2} * slot, .l_len = bytes, .l_pid = 0};
}

bool set_lock(int fd, struct flock request) noexcept {
    int status = 0;
    do {
        status = fcntl(fd, F_OFD_SETLK, &request);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

}  // namespace

Result<LockFile> LockFile::open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return Error{fmt::format("cannot open {}: {}", path, std::strerror(errno))};
    return LockFile(fd);
}

LockFile::LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LockFile& LockFile::operator=(LockFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

LockFile::~LockFile() {
    if (fd_ >= 0) close(fd_);
}

// "owner" when the lock cannot be tested, so that nobody is taken for dead by mistake.
LockFile::Holder LockFile::holder(std::uint32_t slot) const noexcept {
    auto request = range(F_WRLCK, slot, reaper_bytes);
    if (fcntl(fd_, F_OFD_GETLK, &request) != 0) return Holder::owner;
    if (request.l_type == F_UNLCK) return Holder::nobody;
    return request.l_len == owner_bytes ? Holder::owner : Holder::reaper;
}

bool LockFile::try_reap(std::uint32_t slot) const noexcept { return set_lock(fd_, range(F_WRLCK, slot, reaper_bytes)); }

void LockFile::own(std::uint32_t slot) const noexcept {
    auto second = range(F_UNLCK, slot, reaper_bytes - owner_bytes);
    second.l_start += owner_bytes;
    set_lock(fd_, second);
}

void LockFile::unlock(std::uint32_t slot) const noexcept { set_lock(fd_, range(F_UNLCK, slot, reaper_bytes)); }

void* LockFile::hold(std::uint32_t slot) const noexcept {
    void* hold = mmap(nullptr, hold_bytes, PROT_NONE, MAP_SHARED, fd_, static_cast<off_t>(hold_stride) * slot);
    return hold == MAP_FAILED ? nullptr : hold;
}

void LockFile::let_go(void* hold) noexcept {
    if (hold) munmap(hold, hold_bytes);
}

}  // namespace rdmaquota
