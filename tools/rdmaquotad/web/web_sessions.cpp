#include "tools/rdmaquotad/web/web_sessions.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

std::string new_secret() {
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes))
        throw std::system_error(errno, std::generic_category(), "getrandom");
    return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// What save() wrote; nothing where it is of another form.
std::deque<WebSession> read(const Json& list) try {
    std::deque<WebSession> sessions;
    for (const auto& json : list)
        sessions.push_back({{json.at(0).get<uid_t>(), 0, json.at(1).get<bool>(), json.at(2).get<std::vector<gid_t>>(), {}},
                            json.at(3).get<std::string>(), json.at(4).get<std::string>(), json.at(5).get<std::string>()});
    return sessions;
} catch (const Json::exception&) {
    return {};
}

}  // namespace

bool same_secret(std::string_view a, std::string_view b) noexcept {
    unsigned differs = a.size() != b.size();
    for (std::size_t i = 0; i < a.size(); ++i)
        differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 1 : b[i % b.size()]);
    return differs == 0;
}

void WebSessions::begin(const std::string& path, bool kept) {
    path_ = path;
    sessions_.clear();
    if (kept) sessions_ = read(Json::parse(file_text(path), nullptr, false));
    save();
}

void WebSessions::save() const {
    if (path_.empty()) return;
    if (sessions_.empty()) {
        ::unlink(path_.c_str());
        return;
    }
    auto list = Json::array();
    for (const auto& [viewer, token, place, cookie] : sessions_)
        list.push_back({viewer.uid, viewer.privileged, viewer.groups, token, place, cookie});
    if (const auto saved = replace_file(path_, dump(list), 0600); !saved) log(Priority::error, saved.error());
}

void WebSessions::forget(const Peer& peer) {
    std::erase_if(sessions_, [&](const WebSession& session) { return peer.unbounded() || session.viewer.uid == peer.uid; });
    save();
}

const WebSession& WebSessions::of(const Peer& peer) {
    const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                    [&](const WebSession& session) { return session.viewer.uid == peer.uid; });
    if (found != sessions_.end()) {
        if (std::exchange(found->viewer, peer).groups != peer.groups) save();
        return *found;
    }
    make_room();
    const auto& session = sessions_.emplace_back(WebSession{peer, new_secret(), new_secret(), new_secret()});
    save();
    return session;
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
