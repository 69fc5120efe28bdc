#include "tools/common/guard/guard_turn.hpp"

#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

namespace rdmaquota {
namespace {

void wait_for(int fd) {
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
}

void wait_for(int fd, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace

OpenFile take_turn(const std::string& pins, std::optional<std::chrono::milliseconds> patience) {
    OpenFile directory(::open(pins.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory && patience) wait_for(directory.fd(), *patience);
    else if (directory) wait_for(directory.fd());
    return directory;
}

}  // namespace rdmaquota
