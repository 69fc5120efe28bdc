#include "provider/host/file_watch.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/same_file.hpp"

namespace rdmaquota::provider {
namespace {

constexpr int tries = 100;
constexpr timespec between_tries{0, 100'000};

// A byte that no other open file of this device has, in this process or another.
std::int64_t any_byte() noexcept {
    static std::atomic<std::int64_t> count{0};
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto bits =
        static_cast<std::uint64_t>(now.tv_sec * 1'000'000'000 + now.tv_nsec + ++count) * 0x9e3779b97f4a7c15ULL ^
        static_cast<std::uint64_t>(getpid()) << 20;
    return static_cast<std::int64_t>(bits >> 2) + 1;
}

struct flock range(int type, std::int64_t start, std::int64_t bytes) noexcept {
    return {.l_type = static_cast<short>(type), .l_whence = SEEK_SET, .l_start = start, .l_len = bytes, .l_pid = 0};
}

}  // namespace

bool FileWatch::begin(int fd, const char* device_file) noexcept {
    struct stat opened {};
    const bool known = fstat(fd, &opened) == 0;
    if (known && opened.st_nlink == 0) return true;  // removed with the device, or by root
    byte_ = any_byte();
    const bool marked = known && find_path(fd, opened, device_file) && lock(fd);
    state_ = marked ? State::watching : State::blind;
    return marked;
}

bool FileWatch::is_open() const noexcept {
    return state_ == State::blind || (state_ == State::watching && is_marked());
}

// The name that it should have, else the one that the kernel knows.
bool FileWatch::find_path(int fd, const struct stat& opened, const char* device_file) noexcept {
    const auto is_there = [&] {
        struct stat named {};
        return stat(path_, &named) == 0 && same_file(named, opened);
    };
    const auto length = device_file ? strnlen(device_file, sizeof path_) : 0;
    if (length != 0 && length < sizeof path_) {
        std::memcpy(path_, device_file, length + 1);
        if (is_there()) return true;
    }
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const auto size = readlink(link, path_, sizeof path_ - 1);
    if (size <= 0) return false;
    path_[size] = '\0';
    return is_there();
}

// The bytes beside it are unlocked, so that a lock that the program itself has on this file does not become one with
// ours.
bool FileWatch::lock(int fd) const noexcept {
    for (int i = 0; i < tries; ++i) {
        auto beside = range(F_UNLCK, byte_ - 1, 3);
        auto ours = range(F_WRLCK, byte_, 1);
        fcntl(fd, F_OFD_SETLK, &beside);
        if (fcntl(fd, F_OFD_SETLK, &ours) == 0) return true;
        if (errno != EAGAIN && errno != EACCES) return false;
        nanosleep(&between_tries, nullptr);
    }
    return false;
}

bool FileWatch::is_marked() const noexcept {
    const int fd = open(path_, O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return errno != ENOENT && errno != ENXIO && errno != ENODEV && errno != EIO;  // the device is gone
    auto found = range(F_WRLCK, byte_, 1);
    const bool told = fcntl(fd, F_OFD_GETLK, &found) == 0;
    close(fd);
    const bool of_open_file = found.l_pid == -1;  // and not of a process
    return told && found.l_type == F_WRLCK && of_open_file && found.l_start == byte_ && found.l_len == 1;
}

}  // namespace rdmaquota::provider
