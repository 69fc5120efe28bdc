#include "shm/open_inside.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rdmaquota {
namespace {

constexpr int parts = 4;

// Where the last parts begin.
std::size_t split(const std::string& path) noexcept {
    auto at = path.size();
    for (int part = 0; part < parts && at != 0; ++part) {
        const auto slash = path.rfind('/', at - 1);
        if (slash == path.npos) return 0;
        at = slash;
    }
    return at;
}

int open_without_links(const std::string& path, int flags) {
    const auto at = split(path);
    const auto base = at == 0 ? std::string(path.starts_with('/') ? "/" : ".") : path.substr(0, at);
    const int directory = open(base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    how.mode = (flags & O_CREAT) != 0 ? 0600 : 0;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH;
    const auto rest = path.substr(path.find_first_not_of('/', at));
    const auto fd = syscall(SYS_openat2, directory, rest.c_str(), &how, sizeof how);
    const int error = errno;
    close(directory);
    errno = error;
    return static_cast<int>(fd);
}

constexpr int directory_flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Closes `from`.
int enter(int from, const std::string& name) noexcept {
    const int fd = openat(from, name.c_str(), directory_flags | O_NOFOLLOW);
    const int error = errno;
    close(from);
    errno = error;
    return fd;
}

}  // namespace

int open_directory_inside(const std::string& root, const std::string& path) noexcept try {
    if (("/" + path + "/").find("/../") != path.npos) return errno = EINVAL, -1;
    int fd = open(root.c_str(), directory_flags);
    for (std::size_t begin = 0, end = 0; fd >= 0 && begin < path.size(); begin = end + 1) {
        end = std::min(path.find('/', begin), path.size());
        if (end != begin) fd = enter(fd, path.substr(begin, end - begin));
    }
    return fd;
} catch (...) {  // no memory
    errno = ENOMEM;
    return -1;
}

int open_inside(const std::string& path, int flags) noexcept try {
    int fd = open_without_links(path, flags);
    if (fd < 0 && errno == ENOSYS) fd = open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);  // before 5.6
    if (fd < 0) return -1;
    struct stat status {};
    const bool known = fstat(fd, &status) == 0;
    if (known && (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && status.st_nlink == 1))) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
} catch (...) {  // no memory
    errno = ENOMEM;
    return -1;
}

}  // namespace rdmaquota
