#include "provider/host/file_watch.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

namespace rdmaquota::provider {
namespace {

// One that no other open file of this device takes, in this process or another.
std::int64_t any_byte() noexcept {
    static std::atomic<std::int64_t> count{0};
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto bits =
        static_cast<std::uint64_t>(now.tv_sec * 1'000'000'000 + now.tv_nsec + ++count) * 0x9e3779b97f4a7c15ULL ^
        static_cast<std::uint64_t>(getpid()) << 20;
    return static_cast<std::int64_t>(bits >> 2);
}

struct flock lock_of(std::int64_t byte) noexcept {
    return {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1, .l_pid = 0};
}

}  // namespace

void FileWatch::begin(int fd) noexcept {
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const auto length = readlink(link, path_, sizeof path_ - 1);
    byte_ = any_byte();
    auto lock = lock_of(byte_);
    const bool locked =
        length > 0 && length < static_cast<ssize_t>(sizeof path_ - 1) && fcntl(fd, F_OFD_SETLK, &lock) == 0;
    path_[locked ? length : 0] = '\0';
}

bool FileWatch::is_open() const noexcept {
    if (!path_[0]) return false;
    const int fd = open(path_, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return errno == EACCES || errno == EPERM || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    auto lock = lock_of(byte_);
    const bool is_open = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return is_open;
}

}  // namespace rdmaquota::provider
