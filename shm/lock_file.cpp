#include "shm/lock_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

std::string own_maps() {
    std::string text;
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0;) {
        const auto before = text.size();
        text.resize(before + 16384);
        got = ::read(fd, text.data() + before, text.size() - before);
        text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    }
    if (fd >= 0) ::close(fd);
    return text;
}

// Where a line of such a text says that this part of the file is mapped; 0 where it is of another. A line is "begin-end rights offset
// major:minor inode path".
std::uintptr_t mapped_at(const char* line, const struct stat& file, std::uint64_t offset) noexcept {
    unsigned long begin = 0, at = 0, inode = 0;
    unsigned major_number = 0, minor_number = 0;
    if (std::sscanf(line, "%lx-%*x %*s %lx %x:%x %lu", &begin, &at, &major_number, &minor_number, &inode) != 5) return 0;
    const bool same = at == offset && inode == file.st_ino && makedev(major_number, minor_number) == file.st_dev;
    return same ? begin : 0;
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

void* LockFile::hold_again(std::uint32_t slot) const {
    struct stat file {};
    if (fstat(fd_, &file) != 0) return nullptr;
    const auto maps = own_maps();
    for (std::size_t line = 0; line < maps.size(); line = std::min(maps.find('\n', line), maps.size() - 1) + 1)
        if (const auto old = mapped_at(maps.c_str() + line, file, hold_stride * slot)) {
            // With an old size of 0 a shared mapping is mapped once more (mremap(2)).
            void* again = mremap(reinterpret_cast<void*>(old), 0, hold_bytes, MREMAP_MAYMOVE);
            return again == MAP_FAILED ? nullptr : again;
        }
    return nullptr;
}

void LockFile::let_go(void* hold) noexcept {
    if (hold) munmap(hold, hold_bytes);
}

}  // namespace rdmaquota
