#include "tools/rdmaquotad/instance_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// An OFD lock has no pid, so the file says whose it is; for people only.
std::string holder(int fd) {
    char text[16] = {};
    const auto got = ::pread(fd, text, sizeof text - 1, 0);
    int pid = 0;
    std::from_chars(text, text + (got > 0 ? got : 0), pid);
    return pid > 0 ? fmt::format(" as process {}", pid) : "";
}

}  // namespace

Result<void> lock_instance(const std::string& directory) {
    const auto path = directory + "/rdmaquotad.lock";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return Error{fmt::format("cannot open {}: {}{}", path, std::strerror(errno),
                                 errno == ENOENT ? "; run 'rdmaquota reload' to make the directory" : "")};
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        const auto who = holder(fd);
        ::close(fd);
        return Error{fmt::format("rdmaquotad already runs for {}{}; stop it first", directory, who)};
    }
    const auto text = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) < 0) return {};  // nobody's name then
    return {};
}

}  // namespace rdmaquota
