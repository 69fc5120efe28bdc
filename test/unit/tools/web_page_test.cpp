#include <map>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/rdmaquotad/web/assets.hpp"
#include "tools/rdmaquotad/web/web_page.hpp"

using namespace rdmaquota;

namespace {

using Fields = std::map<std::string, std::string>;

const Peer root{0, 1, true, {0}, {}};
Peer user(uid_t uid) { return {uid, 1, false, {uid}, {}}; }

Text text(std::string words) { return std::make_shared<const std::string>(std::move(words)); }

std::function<std::string(const char*)> lookup(Fields fields) {
    return [fields = std::move(fields)](const char* name) {
        const auto found = fields.find(name);
        return found == fields.end() ? std::string() : found->second;
    };
}

// Tells who asked for what.
struct PageFixture {
    WebPage page{{[](const Peer& who) { return text("state of " + std::to_string(who.uid)); },
                  [](const Peer& who) { return text("hours of " + std::to_string(who.uid)); },
                  [](const Peer& who, const SeriesName& series) {
                      return who.privileged ? text(series.tenant + " " + series.device) : nullptr;
                  },
                  [](const Peer& who, const std::string& name, std::uint32_t pid) {
                      return who.privileged ? text(name + " " + std::to_string(pid)) : nullptr;
                  }}};

    HttpReply get(const std::string& path, Fields headers = {}, Fields arguments = {}) {
        headers.try_emplace("Host", "127.0.0.1:9838");
        return page.answer({path, lookup(std::move(headers)), lookup(std::move(arguments))});
    }
    HttpReply data(const WebSession& session, const std::string& what, Fields headers = {}, Fields arguments = {}) {
        headers.try_emplace("Cookie", "rdmaquota=" + session.cookie);
        return get("/data/" + session.place + "/" + what, std::move(headers), std::move(arguments));
    }
};

std::string header(const HttpReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers)
        if (key == name) return value;
    return {};
}

}  // namespace

TEST_CASE("secrets are the same only when all of them is") {
    CHECK(same_secret("abc", "abc"));
    CHECK(same_secret("", ""));
    for (const auto* other : {"", "a", "ab", "abd", "bbc", "abcabc", "abca"}) CHECK_FALSE(same_secret(other, "abc"));
    CHECK_FALSE(same_secret("a", ""));
}

TEST_CASE("a user has one session, with secrets of its own, and the groups that it had last") {
    WebSessions sessions;
    const auto first = sessions.of(user(7));
    const auto second = sessions.of(user(8));
    CHECK(first.token.size() == 32);
    CHECK(std::set<std::string>{first.token, first.place, first.cookie, second.token, second.place, second.cookie}
              .size() == 6);
    auto again = user(7);
    again.groups.push_back(99);
    CHECK(sessions.of(again).token == first.token);
    REQUIRE(sessions.with_token(first.token));
    CHECK(sessions.with_token(first.token)->viewer.groups == again.groups);
    CHECK(sessions.at(second.place, second.cookie)->viewer.uid == 8);
    CHECK_FALSE(sessions.at(first.place, second.cookie));
    CHECK_FALSE(sessions.with_token(first.cookie));
    CHECK_FALSE(sessions.with_token(""));
}

TEST_CASE("sessions go on in the next sidecar where the port was kept, and end elsewhere") {
    const TemporaryDirectory directory;
    const auto path = directory.path() + "/sessions.json";
    WebSessions first;
    first.begin(path, false);
    const auto of_root = first.of(root), of_user = first.of(user(7));
    WebSessions next;
    next.begin(path, true);
    REQUIRE(next.at(of_user.place, of_user.cookie));
    CHECK(next.at(of_user.place, of_user.cookie)->viewer.groups == of_user.viewer.groups);
    CHECK_FALSE(next.at(of_user.place, of_user.cookie)->viewer.privileged);
    CHECK(next.with_token(of_root.token)->viewer.privileged);
    next.forget(user(7));
    CHECK_FALSE(next.with_token(of_user.token));
    CHECK(next.with_token(of_root.token));
    WebSessions last;
    last.begin(path, true);
    CHECK_FALSE(last.with_token(of_user.token));
    (void)last.of(user(8));
    last.forget(root);
    CHECK_FALSE(last.with_token(of_root.token));
    (void)last.of(root);
    last.begin(path, false);
    CHECK_FALSE(last.with_token(of_root.token));
    for (const auto* broken : {"", "[", "{}", "[1]", "[[0]]", R"([[0,true,[],"a","b",3]])"}) {
        REQUIRE(replace_file(path, broken));
        next.begin(path, true);
        CHECK_FALSE(next.with_token("a"));
    }
}

TEST_CASE("many users push out the oldest session, never root's") {
    WebSessions sessions;
    const auto of_root = sessions.of(root);
    const auto oldest = sessions.of(user(1));
    for (uid_t uid = 2; uid <= WebSessions::most; ++uid) (void)sessions.of(user(uid));
    CHECK(sessions.with_token(of_root.token));
    CHECK_FALSE(sessions.with_token(oldest.token));
}

TEST_CASE_METHOD(PageFixture, "a token leads to the page, with a cookie for one path") {
    const auto session = page.sessions().of(user(7));
    const auto reply = get("/", {}, {{"token", session.token}});
    CHECK(reply.status == 303);
    CHECK(header(reply, "Location") == "/?place=" + session.place);
    CHECK(header(reply, "Set-Cookie") ==
          "rdmaquota=" + session.cookie + "; Path=/data/" + session.place + "/; HttpOnly; SameSite=Strict");
    CHECK(get("/", {}, {{"token", session.cookie}}).status == 403);
    CHECK(get("/", {{"Sec-Fetch-Site", "none"}}, {{"token", session.token}}).status == 303);
    CHECK(get("/", {{"Sec-Fetch-Site", "cross-site"}}, {{"token", session.token}}).status == 403);
}

TEST_CASE_METHOD(PageFixture, "data are for those whose cookie and path belong together") {
    const auto one = page.sessions().of(user(7));
    const auto other = page.sessions().of(user(8));
    CHECK(*data(one, "state").body == "state of 7");
    CHECK(*data(one, "state", {{"Cookie", "a=b; rdmaquota=" + one.cookie + "; c=d"}}).body == "state of 7");
    for (const auto* cookie : {"", "rdmaquota=", "rdmaquota", "xrdmaquota=", "; ;=;"})
        CHECK(data(one, "state", {{"Cookie", cookie}}).status == 401);
    CHECK(data(one, "state", {{"Cookie", "rdmaquota=" + other.cookie}}).status == 401);
    CHECK(get("/data/all/state", {{"Cookie", "rdmaquota=" + one.cookie}}).status == 401);
    CHECK(data(one, "tenant", {}, {{"name", "physics"}}).status == 404);
    const auto of_root = page.sessions().of(root);
    CHECK(*data(of_root, "tenant", {}, {{"name", "physics"}}).body == "physics 0");
    CHECK(*data(of_root, "tenant", {}, {{"name", "physics"}, {"pid", "4711"}}).body == "physics 4711");
    CHECK(*data(of_root, "tenant", {}, {{"name", "physics"}, {"pid", "4711x"}}).body == "physics 0");
    CHECK(*data(of_root, "history", {}, {{"tenant", "a"}, {"device", "d"}, {"resource", "qp"}}).body == "a d");
    CHECK(data(of_root, "history", {}, {{"tenant", "a"}, {"device", "d"}, {"resource", "qps"}}).status == 404);
    CHECK(*data(of_root, "hours").body == "hours of 0");
    for (const auto* what : {"", "states", "state/", "../state"}) CHECK(data(of_root, what).status == 404);
}

TEST_CASE_METHOD(PageFixture, "where everyone may look, no cookie is needed") {
    page.set_access(WebAccess::all);
    CHECK(get("/data/all/state").status == 200);
    page.set_access(WebAccess::token);
    CHECK(get("/data/all/state").status == 401);
}

TEST_CASE_METHOD(PageFixture, "a name that leads here is not this page's") {
    for (const auto* host : {"127.0.0.1", "127.0.0.1:9838", "localhost:1", "localhost"})
        CHECK(get("/", {{"Host", host}}).status == 200);
    for (const auto* host :
         {"", "evil.example", "evil.example:9838", "127.0.0.1.evil.example", "localhost.evil.example:80",
          "evil.example:127.0.0.1", "127.0.0.1:80:80", "[::1]:9838", "LOCALHOST@x"})
        CHECK(get("/", {{"Host", host}}).status == 421);
}

TEST_CASE_METHOD(PageFixture, "data are for the page's own scripts") {
    const auto session = page.sessions().of(root);
    CHECK(data(session, "state", {{"Origin", "http://127.0.0.1:9838"}}).status == 200);
    for (const auto* origin : {"http://127.0.0.1:9839", "https://127.0.0.1:9838", "http://localhost:9838", "null"})
        CHECK(data(session, "state", {{"Origin", origin}}).status == 403);
    for (const auto* site : {"same-origin", "none"})
        CHECK(data(session, "state", {{"Sec-Fetch-Site", site}}).status == 200);
    for (const auto* site : {"same-site", "cross-site", "x"})
        CHECK(data(session, "state", {{"Sec-Fetch-Site", site}}).status == 403);
}

TEST_CASE_METHOD(PageFixture, "each reply says what may be done with it") {
    const auto session = page.sessions().of(root);
    for (const auto& reply :
         {get("/"), get("/none"), get("/data/x/y"), data(session, "state"), get("/", {{"Host", "evil"}})}) {
        CHECK(header(reply, "Content-Security-Policy").find("default-src 'none'") == 0);
        CHECK(header(reply, "X-Frame-Options") == "DENY");
        CHECK(header(reply, "X-Content-Type-Options") == "nosniff");
        CHECK(header(reply, "Referrer-Policy") == "no-referrer");
        CHECK(header(reply, "Cache-Control") == "no-store");
    }
}

TEST_CASE("the page's files are compiled in") {
    for (const auto* path : {"/index.html", "/app.js", "/style.css", "/chart.min.js"}) CHECK(find_asset(path));
    for (const auto* path : {"/", "", "/app", "/../app.js", "/app.js/"}) CHECK_FALSE(find_asset(path));
    CHECK(find_asset("/index.html")->text.starts_with("<!doctype html>"));
}
