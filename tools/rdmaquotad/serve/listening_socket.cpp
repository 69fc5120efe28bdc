#include "tools/rdmaquotad/serve/listening_socket.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

unsigned long inode_of(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The path may be longer than a socket's name: its directory goes by a descriptor.
bool bind_to(int fd, const std::string& path) {
    const auto slash = path.rfind('/');
    const int directory = ::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    const auto short_path = fmt::format("/proc/self/fd/{}{}", directory, path.substr(slash));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    short_path.copy(address.sun_path, sizeof address.sun_path - 1);
    const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const int error = errno;
    ::close(directory);
    errno = error;
    return bound;
}

}  // namespace

ListeningSocket::ListeningSocket(Loop& loop, std::string path, std::function<void()> ready) : path_(std::move(path)) {
    if (!listen()) {
        error_ = fmt::format("cannot listen at {}: {}", path_, std::strerror(errno));
        return;
    }
    inode_ = inode_of(path_);
    source_ = loop.watch(fd_, EPOLLIN, [ready = std::move(ready)](std::uint32_t) { ready(); }, Urgency::last);
}

ListeningSocket::~ListeningSocket() {
    source_ = {};
    if (inode_ != 0 && in_place()) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
}

bool ListeningSocket::listen() {
    ::unlink(path_.c_str());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd_ >= 0 && bind_to(fd_, path_) && ::chmod(path_.c_str(), 0666) == 0 && ::listen(fd_, SOMAXCONN) == 0;
}

bool ListeningSocket::in_place() const { return inode_of(path_) == inode_; }

int ListeningSocket::accept() { return ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }

void ListeningSocket::resume() {
    if (fd_ >= 0 && error_.empty()) source_.set_events(EPOLLIN);
}

}  // namespace rdmaquota
