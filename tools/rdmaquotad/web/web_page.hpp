// The web page over HTTP: files of the page for everyone, data for those who may see them. Read-only.
//
//   /?token=TOKEN        sets the cookie and leads to the page
//   /, /app.js, ...      the page
//   /data/PLACE/state, /data/PLACE/hours, /data/PLACE/history?tenant=&device=&resource=, /data/PLACE/tenant?name=[&pid=]
//                        JSON, with the cookie that belongs to PLACE; with `web = "all"`, PLACE is "all"
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "policy/sidecar.hpp"
#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/serve/http_server.hpp"
#include "tools/rdmaquotad/web/web_sessions.hpp"

namespace rdmaquota {

class WebPage {
public:
    // What there is to see, for those who see it. Each returns JSON; null: there is no such thing.
    struct Data {
        std::function<Text(const Peer&)> state;
        std::function<Text(const Peer&)> hours;  // last_hour_text
        std::function<Text(const Peer&, const SeriesName&)> history;
        std::function<Text(const Peer&, const std::string& tenant, std::uint32_t pid)> tenant;  // pid 0: all processes
    };
    explicit WebPage(Data data) : data_(std::move(data)) {}

    void set_access(WebAccess access) noexcept { access_ = access; }
    WebSessions& sessions() noexcept { return sessions_; }

    HttpReply answer(const HttpRequest& request);

private:
    HttpReply find(const HttpRequest& request);
    HttpReply enter(const HttpRequest& request, const std::string& token);
    HttpReply data(const HttpRequest& request);
    const Peer* viewer(const HttpRequest& request, const std::string& place) const;

    Data data_;
    WebAccess access_ = WebAccess::token;
    WebSessions sessions_;
    Peer everyone_{0, 0, true, {}, {}};  // for `web = "all"`
};

}  // namespace rdmaquota
