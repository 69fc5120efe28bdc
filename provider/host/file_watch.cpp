#include "provider/host/file_watch.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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
    device_ = opened.st_dev;
    inode_ = opened.st_ino;
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

// Reads /proc/self/maps in pieces; without /proc, no. Of each line only the beginning counts: "from-to rights offset MAJOR:MINOR
// INODE path", proc_pid_maps(5).
bool FileWatch::is_mapped() const noexcept {
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char wanted[48], piece[256], line[96];
    std::snprintf(wanted, sizeof wanted, " %02x:%02x %llu ", major(device_), minor(device_), static_cast<unsigned long long>(inode_));
    std::size_t length = 0;
    bool found = false;
    for (ssize_t got = 0; !found && (got = read(fd, piece, sizeof piece)) > 0;) {
        for (ssize_t i = 0; i < got && !found; ++i) {
            if (piece[i] != '\n') {
                if (length < sizeof line - 1) line[length++] = piece[i];
                continue;
            }
            line[length] = '\0';
            found = std::strstr(line, wanted) != nullptr;
            length = 0;
        }
    }
    close(fd);
    return found;
}

bool FileWatch::has_stray_descriptor(bool (*is_known)(int fd)) const noexcept {
    DIR* descriptors = opendir("/proc/self/fd");
    if (!descriptors) return false;
    bool found = false;
    while (const dirent* entry = found ? nullptr : readdir(descriptors)) {
        const int fd = std::atoi(entry->d_name);
        struct stat status {};
        const bool of_device = entry->d_name[0] != '.' && fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
        found = of_device && !is_known(fd);
    }
    closedir(descriptors);
    return found;
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
