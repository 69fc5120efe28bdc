#include "tools/rdmaquotad/web/web_page.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include <fmt/core.h>

#include "tools/rdmaquotad/web/assets.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view data_path = "/data/";

HttpReply plain(unsigned status, std::string_view text) {
    return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text)};
}

// 0 for what is none.
std::uint32_t number_of(const std::string& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// A page elsewhere, whose name leads to this address, asks with that name.
bool is_loopback(std::string_view host) {
    const auto name = host.substr(0, host.rfind(':'));
    return name == "127.0.0.1" || name == "localhost";
}

// Browsers tell where a request comes from. Another port of this address is another user's.
bool is_foreign(const HttpRequest& request) {
    const auto site = request.header("Sec-Fetch-Site");
    if (!site.empty() && site != "same-origin" && site != "none") return true;
    const auto origin = request.header("Origin");
    return !origin.empty() && origin != "http://" + request.header("Host");
}

// One of the cookies in "a=1; b=2".
std::string cookie_of(std::string_view header, std::string_view name) {
    while (!header.empty()) {
        const auto end = header.find(';');
        auto pair = header.substr(0, end);
        pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
        if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
            return std::string(pair.substr(name.size() + 1));
        header.remove_prefix(end == std::string_view::npos ? header.size() : end + 1);
    }
    return {};
}

// Against frames, guessed types, scripts and styles from elsewhere, and traces in caches and referrers.
void secure(HttpReply& reply) {
    reply.headers.insert(reply.headers.end(),
                         {
                             {"Content-Security-Policy",
                              "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                              "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                             {"X-Frame-Options", "DENY"},
                             {"X-Content-Type-Options", "nosniff"},
                             {"Referrer-Policy", "no-referrer"},
                             {"Cross-Origin-Resource-Policy", "same-origin"},
                             {"Cross-Origin-Opener-Policy", "same-origin"},
                             {"Cache-Control", "no-store"},
                         });
}

}  // namespace

HttpReply WebPage::answer(const HttpRequest& request) {
    auto reply = find(request);
    secure(reply);
    return reply;
}

HttpReply WebPage::find(const HttpRequest& request) {
    if (!is_loopback(request.header("Host"))) return plain(421, "this page is for 127.0.0.1 and localhost only\n");
    if (request.path.starts_with(data_path)) return data(request);
    if (request.path == "/")
        if (const auto token = request.argument("token"); !token.empty()) return enter(request, token);
    if (const auto* asset = find_asset(request.path == "/" ? "/index.html" : request.path))
        return {200, asset->type, std::make_shared<const std::string>(asset->text)};
    return plain(404, "there is no such page\n");
}

// A link on another site could put its reader into somebody else's view.
HttpReply WebPage::enter(const HttpRequest& request, const std::string& token) {
    if (is_foreign(request))
        return plain(403, "Copy this address into the browser; it is not followed from other pages.\n");
    const auto* session = sessions_.with_token(token);
    if (session == nullptr)
        return plain(403,
                     "This address is no longer good: its token was renewed, or rdmaquotad was stopped meanwhile.\n"
                     "'rdmaquota web' prints a new one.\n");
    auto reply = plain(303, "");
    // Without a part behind a "#", so that the browser keeps the one of the address that was typed.
    reply.headers.emplace_back("Location", "/?place=" + session->place);
    reply.headers.emplace_back("Set-Cookie", fmt::format("rdmaquota={}; Path={}{}/; HttpOnly; SameSite=Strict",
                                                         session->cookie, data_path, session->place));
    return reply;
}

const Peer* WebPage::viewer(const HttpRequest& request, const std::string& place) const {
    if (access_ == WebAccess::all && place == "all") return &everyone_;
    const auto* session = sessions_.at(place, cookie_of(request.header("Cookie"), "rdmaquota"));
    return session == nullptr ? nullptr : &session->viewer;
}

HttpReply WebPage::data(const HttpRequest& request) {
    if (is_foreign(request)) return plain(403, "this is for its own page only\n");
    const auto slash = request.path.find('/', data_path.size());
    if (slash == std::string::npos) return plain(404, "there is no such page\n");
    const auto* who = viewer(request, request.path.substr(data_path.size(), slash - data_path.size()));
    if (who == nullptr) return plain(401, "'rdmaquota web' prints the address of this page\n");
    const auto what = request.path.substr(slash + 1);
    Text text;
    if (what == "state") text = data_.state(*who);
    if (what == "hours") text = data_.hours(*who);
    if (what == "history")
        if (const auto resource = find_resource(request.argument("resource")))
            text = data_.history(*who, {request.argument("tenant"), request.argument("device"), *resource});
    if (what == "tenant") text = data_.tenant(*who, request.argument("name"), number_of(request.argument("pid")));
    if (!text) return plain(404, "there is no such thing\n");
    return {200, "application/json", text};
}

}  // namespace rdmaquota
