// Tokens for the web page, one for each user that asked for one over the control socket. A file keeps them for the next sidecar.
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

    // Keeps the sessions at `path`, for root alone. Goes on with those of an earlier sidecar where `kept`: nobody else could listen
    // at the page's port meanwhile, whom browsers would have sent their secrets to. Else all sessions end.
    void begin(const std::string& path, bool kept);

    // The session of this user, a new one if there is none; its groups are the peer's from now on.
    const WebSession& of(const Peer& peer);
    // Ends this user's session; root's call ends all.
    void forget(const Peer& peer);

    // Null: nobody's. Takes as long for a wrong one, however much of it is right.
    const WebSession* with_token(std::string_view token) const;
    const WebSession* at(std::string_view place, std::string_view cookie) const;

private:
    void make_room();
    void save() const;

    std::string path_;                 // empty: not kept
    std::deque<WebSession> sessions_;  // oldest first
};

// Whether they are the same, in a time that depends on their lengths only.
bool same_secret(std::string_view a, std::string_view b) noexcept;

}  // namespace rdmaquota
