#include "shm/directory_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shm/number.hpp"

namespace rdmaquota {
namespace {

constexpr int lowest_descriptor = 512;  // programs seldom get so far with those that they close or reuse by number
constexpr int most_reads = 1024;        // of 512 bytes each
constexpr unsigned long files = 64;

// The beginning of a file, as a string; false when it cannot be read.
bool read_text(const char* path, char* text, std::size_t size) noexcept {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const auto bytes = read(fd, text, size - 1);
    close(fd);
    text[std::max<ssize_t>(bytes, 0)] = '\0';
    return bytes > 0;
}

template <std::size_t size>
bool read_text(const char* path, char (&text)[size]) noexcept {
    return read_text(path, text, size);
}

// A process in some hundred groups has a longer file, of which the line may be in the rest. The text is not on the
// stack, which may have 16 KiB.
bool is_filtered() noexcept {
    constexpr std::size_t size = 4096;
    const std::unique_ptr<char[]> text(new (std::nothrow) char[size]);
    if (!text || !read_text("/proc/thread-self/status", text.get(), size)) return true;
    const auto mode = number_after(text.get(), "\nSeccomp:");
    return mode ? *mode != 0 : std::strlen(text.get()) == size - 1;
}

int duplicate(int fd) noexcept {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest_descriptor);
    return high >= 0 ? high : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

int inotify_descriptor() noexcept {
    const int first = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (first < 0) return -1;
    const int fd = duplicate(first);
    close(first);
    return fd;
}

// The bit of the file that an event is about; 0 for other names.
std::uint64_t bit_of(const inotify_event& event) noexcept {
    const auto number = event.len > 0 ? number_in(event.name).value_or(files) : files;
    return number < files ? std::uint64_t{1} << number : 0;
}

// Reads what waits in an inotify instance into `closed`. False when events were lost or come too fast.
bool read_events(int fd, std::uint64_t& closed) noexcept {
    alignas(inotify_event) char buffer[512];  // the longest event has 16 bytes and a name of at most 256
    int waiting = 0;
    for (int reads = 0; reads < most_reads; ++reads) {
        if (ioctl(fd, FIONREAD, &waiting) != 0) return false;
        if (waiting == 0) return true;
        const auto size = read(fd, buffer, sizeof buffer);
        if (size <= 0) return false;
        for (ssize_t at = 0; at < size;) {
            const auto& event = *reinterpret_cast<const inotify_event*>(buffer + at);
            if (event.mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT)) return false;
            closed |= bit_of(event);
            at += static_cast<ssize_t>(sizeof event + event.len);
        }
    }
    return false;
}

}  // namespace

unsigned long DirectoryWatch::most_instances() noexcept {
    char text[32];
    return read_text("/proc/sys/fs/inotify/max_user_instances", text) ? number_in(text).value_or(0) : 0;
}

bool DirectoryWatch::begin(const char* directory) noexcept {
    struct stat status {};
    if (is_filtered() || stat(directory, &status) != 0) return false;
    inode = status.st_ino;
    device = static_cast<unsigned long>(major(status.st_dev)) << 20 | minor(status.st_dev);  // the kernel's MKDEV
    fd = inotify_descriptor();
    if (fd < 0) return false;
    if (inotify_add_watch(fd, directory, IN_CLOSE_WRITE | IN_ONLYDIR) >= 0 && whose(fd) == Whose::ours) return true;
    close(std::exchange(fd, -1));
    return false;
}

// An inotify instance has a line for each watch, with inode and device in hexadecimal. Threads may have tables of their
// own.
DirectoryWatch::Whose DirectoryWatch::whose(int descriptor) const noexcept {
    char path[48], text[512];
    std::snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", descriptor);
    if (!read_text(path, text))
        return errno == ENOENT && access("/proc/thread-self/fdinfo", F_OK) == 0 ? Whose::not_ours : Whose::unknown;
    const char* watch = std::strstr(text, "inotify wd:");
    const bool ours = watch && !std::strstr(watch + 1, "inotify wd:") && number_after(watch, " ino:", 16) == inode &&
                      number_after(watch, " sdev:", 16) == device && number_after(watch, " mask:", 16) == IN_CLOSE_WRITE;
    return ours ? Whose::ours : Whose::not_ours;
}

DirectoryWatch::News DirectoryWatch::read_closed(std::uint64_t& closed) const noexcept {
    auto owner = whose(fd);
    const int own = owner == Whose::ours ? duplicate(fd) : -1;
    if (owner == Whose::ours) owner = own >= 0 ? whose(own) : Whose::unknown;
    const bool read = owner == Whose::ours && read_events(own, closed);
    if (own >= 0) close(own);
    if (read) return News::read;
    return owner == Whose::unknown ? News::unknown : News::lost;
}

void DirectoryWatch::end() noexcept {
    if (fd >= 0 && whose(fd) == Whose::ours) close(fd);
    fd = -1;
}

}  // namespace rdmaquota
