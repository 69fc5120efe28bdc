#include "tools/rdmaquotad/serve/kept_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <systemd/sd-daemon.h>

namespace rdmaquota {
namespace {

std::map<std::string, int> inherited_sockets() {
    std::map<std::string, int> sockets;
    char** names = nullptr;
    const int count = ::sd_listen_fds_with_names(1, &names);
    for (int i = 0; i < count; ++i) {
        sockets.emplace(names[i], SD_LISTEN_FDS_START + i);
        std::free(names[i]);
    }
    std::free(names);
    return sockets;
}

}  // namespace

int take_kept_socket(const std::string& name, std::uint16_t port) {
    static auto inherited = inherited_sockets();
    const auto node = inherited.extract(name);
    if (!node.empty() && port != 0 && ::sd_is_socket_inet(node.mapped(), AF_INET, SOCK_STREAM, 1, port) > 0)
        return node.mapped();
    if (!node.empty()) ::close(node.mapped());
    ::sd_notify(0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name).c_str());
    return -1;
}

int make_kept_socket(const std::string& name, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) return -1;
    if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, SOMAXCONN) != 0) {
        const int error = errno;
        ::close(fd);
        errno = error;
        return -1;
    }
    ::sd_pid_notify_with_fds(0, 0, fmt::format("FDSTORE=1\nFDNAME={}", name).c_str(), &fd, 1);
    return fd;
}

}  // namespace rdmaquota
