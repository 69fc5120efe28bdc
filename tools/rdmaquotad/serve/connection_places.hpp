// The places of a port, of which nobody but the node's root may take more than a quarter: no other user of the node, and no
// other machine. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace rdmaquota {

// The user who owns the other end of a TCP connection to `port` of the loopback address. Both in host byte order.
// Nothing where its socket is closed already, or the kernel does not tell.
std::optional<uid_t> loopback_peer(std::uint32_t address, std::uint16_t peer_port, std::uint16_t port);

class ConnectionPlaces {
public:
    using Clock = std::chrono::steady_clock;
    // Whose a connection is: a user's of this node, or an address's of another machine. Of neither: not known; all of these are one.
    struct User {
        std::optional<uid_t> id = {};
        std::string address = {};
        auto operator<=>(const User&) const = default;
    };
    static constexpr std::size_t all = 64, of_user = all / 4;
    // For connections that are dropped and not yet closed.
    static constexpr std::size_t most_connections = all + of_user;

    bool may_begin(const User& user) const { return user.id == uid_t{0} || count(user) < of_user; }
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
    std::size_t count(const User& user) const;
    std::optional<int> oldest_of_greediest() const;

    std::map<int, Connection> connections_;
};

}  // namespace rdmaquota
