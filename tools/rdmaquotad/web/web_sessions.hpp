// Who may see the web page: a token for each user that asked for one over the control socket. Until the sidecar ends.
//
// Loopback has ports of many users, and a browser sends its cookies to all of them. Hence a cookie goes with requests
// below one path only, which is a secret that the page keeps for its own origin.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "tools/rdmaquotad/serve/control_socket.hpp"

namespace rdmaquota {

struct WebSession {
    Peer viewer;
    std::string token;  // in the address; turned into the other two
    std::string place;  // the part of the path below which there are data
    std::string cookie;
};

class WebSessions {
public:
    static constexpr std::size_t most = 1024;  // then the oldest one goes that is not root's

    // The session of this user, a new one if there is none; its groups are the peer's from now on.
    const WebSession& of(const Peer& peer);

    // Null: nobody's. Takes as long for a wrong one, however much of it is right.
    const WebSession* with_token(std::string_view token) const;
    const WebSession* at(std::string_view place, std::string_view cookie) const;

private:
    void make_room();

    std::deque<WebSession> sessions_;  // oldest first
};

// Whether they are the same, in a time that depends on their lengths only.
bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace rdmaquota
