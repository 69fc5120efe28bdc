#include "provider/host/sidecar_request.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "policy/tenant.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr int instance_patience_ms = 2000;

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

void ask(int fd, const sockaddr_un& address, std::string_view request, int patience_ms) noexcept {
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return;
    pollfd readable{fd, POLLIN, 0};
    const auto end = now_ms() + patience_ms;
    for (auto left = patience_ms; left > 0; left = static_cast<int>(end - now_ms()))
        if (poll(&readable, 1, left) >= 0 || errno != EINTR) return;  // else a signal of the program's
}

void ask_sidecar(const std::string& directory, std::string_view request, int patience_ms) noexcept {
    const KeepErrno keep;
    sockaddr_un address{};
    if (!fill_address(address, directory)) return;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    ask(fd, address, request, patience_ms);
    close(fd);
}

using Escaped = char[2 * tenant_name_bytes];  // with the 0 at its end

// As JSON has it; a name has no other character that it would escape. False when it is longer than a tenant's.
bool escape(std::string_view name, Escaped& escaped) noexcept {
    if (name.size() >= tenant_name_bytes) return false;
    std::size_t length = 0;
    for (const char c : name) {
        if (c == '\\' || c == '"') escaped[length++] = '\\';
        escaped[length++] = c;
    }
    escaped[length] = '\0';
    return true;
}

}  // namespace

void ask_for_tenant(const std::string& directory) noexcept {
    ask_sidecar(directory, "{\"version\":1,\"request\":\"instance\"}\n", instance_patience_ms);
}

void ask_for_grant(const std::string& directory, const std::string& tenant, int patience_ms) noexcept {
    Escaped name{};
    if (!escape(tenant, name)) return;
    char request[sizeof name + 64];
    const int length = std::snprintf(request, sizeof request, "{\"version\":1,\"request\":\"grant\",\"tenant\":\"%s\"}\n", name);
    if (length > 0 && length < static_cast<int>(sizeof request))
        ask_sidecar(directory, {request, static_cast<std::size_t>(length)}, patience_ms);
}

}  // namespace rdmaquota::provider
