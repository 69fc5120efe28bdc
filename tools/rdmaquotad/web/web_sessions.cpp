#include "tools/rdmaquotad/web/web_sessions.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rdmaquota {
namespace {

std::string new_secret() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes))
        throw std::system_error(errno, std::generic_category(), "getrandom");
    return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) noexcept {
    unsigned differs = a.size() != b.size();
    for (std::size_t i = 0; i < a.size(); ++i)
        differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 1 : b[i % b.size()]);
    return differs == 0;
}

const WebSession& WebSessions::of(const Peer& peer) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const WebSession& session) { return session.viewer.uid == peer.uid; });
    if (found != sessions_.end()) {
        found->viewer = peer;
        return *found;
    }
    make_room();
    return sessions_.emplace_back(WebSession{peer, new_secret(), new_secret(), new_secret()});
}

void WebSessions::make_room() {
    if (sessions_.size() < most) return;
    const auto oldest = std::find_if(sessions_.begin(), sessions_.end(),
                                     [](const WebSession& session) { return !session.viewer.privileged; });
    if (oldest != sessions_.end()) sessions_.erase(oldest);
}

const WebSession* WebSessions::with_token(std::string_view token) const {
    const WebSession* found = nullptr;
    for (const auto& session : sessions_)
        if (same_secret(token, session.token)) found = &session;
    return found;
}

const WebSession* WebSessions::at(std::string_view place, std::string_view cookie) const {
    const WebSession* found = nullptr;
    for (const auto& session : sessions_) {
        const bool right_place = same_secret(place, session.place), right_cookie = same_secret(cookie, session.cookie);
        if (right_place && right_cookie) found = &session;
    }
    return found;
}

}  // namespace rdmaquota
