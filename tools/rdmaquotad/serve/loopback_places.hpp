// The places of a loopback port, of which no user other than root may take more than a quarter. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <sys/types.h>

namespace rdmaquota {

// The user who owns the other end of a TCP connection to `port` of the loopback address. Both in host byte order.
// Nothing where its socket is closed already, or the kernel does not tell.
std::optional<uid_t> loopback_peer(std::uint32_t address, std::uint16_t peer_port, std::uint16_t port);

class LoopbackPlaces {
public:
    using Clock = std::chrono::steady_clock;
    using User = std::optional<uid_t>;  // none: not known; all of these are one user
    static constexpr std::size_t all = 64, of_user = all / 4;
    // For connections that are dropped and not yet closed.
    static constexpr std::size_t most_connections = all + of_user;

    bool may_begin(User user) const { return user == User(0) || count(user) < of_user; }
    // Takes a place. Where none was free: the descriptor of a connection that must be dropped, the oldest one of the user who has
    // most places.
    std::optional<int> begin(int fd, User user, Clock::time_point now);
    void end(int fd) { connections_.erase(fd); }

    struct Connection {
        User user;
        Clock::time_point began;
    };
    const std::map<int, Connection>& connections() const noexcept { return connections_; }  // by descriptor

private:
    std::size_t count(User user) const;
    std::optional<int> oldest_of_greediest() const;

    std::map<int, Connection> connections_;
};

}  // namespace rdmaquota
