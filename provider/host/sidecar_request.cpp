#include "provider/host/sidecar_request.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr int patience_ms = 2000;
constexpr std::string_view request = "{\"version\":1,\"request\":\"instance\"}\n";

long now_ms() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// False when the name is too long for a socket's.
bool fill_address(sockaddr_un& address, const std::string& directory) noexcept {
    static constexpr std::string_view name = "/control.sock";
    if (directory.size() + name.size() >= sizeof address.sun_path) return false;
    address.sun_family = AF_UNIX;
    directory.copy(address.sun_path, directory.size());
    name.copy(address.sun_path + directory.size(), name.size());
    return true;
}

void ask(int fd, const sockaddr_un& address) noexcept {
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return;
    pollfd readable{fd, POLLIN, 0};
    const auto end = now_ms() + patience_ms;
    for (auto left = patience_ms; left > 0; left = static_cast<int>(end - now_ms()))
        if (poll(&readable, 1, left) >= 0 || errno != EINTR) return;  // else a signal of the program's
}

}  // namespace

void ask_for_tenant(const std::string& directory) noexcept {
    const KeepErrno keep;
    sockaddr_un address{};
    if (!fill_address(address, directory)) return;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    ask(fd, address);
    close(fd);
}

}  // namespace rdmaquota::provider
