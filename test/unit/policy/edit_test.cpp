#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <string>

#include <catch2/catch.hpp>

#include "policy/file/edit.hpp"
#include "test/unit/policy/policy_texts.hpp"

using namespace rdmaquota;

namespace {

namespace fs = std::filesystem;

std::string edited(const std::string& text, const LimitChange& change) {
    const auto result = edit_policy(text, "p.toml", {change});
    INFO((result ? "" : result.error()));
    REQUIRE(result);
    return result.value();
}

LimitKey qp_of(const std::string& tenant, Scope scope = Scope::tenant) { return {tenant, scope, "*", Resource::qp}; }

}  // namespace

TEST_CASE("an edit changes the value and leaves the rest") {
    const std::string text =
        "version = 1 # é\n\n[process.\"*\"]   # all\n\tqp=10 # ten\n  cq = \"1k\"\n\n[tenant.default]\n";
    CHECK(edited(text, {{"", Scope::process, "*", Resource::qp}, 4}) ==
          "version = 1 # é\n\n[process.\"*\"]   # all\n\tqp=4 # ten\n  cq = \"1k\"\n\n[tenant.default]\n");
    CHECK(edited(text, {{"", Scope::process, "*", Resource::cq}, unlimited}) ==
          "version = 1 # é\n\n[process.\"*\"]   # all\n\tqp=10 # ten\n  cq = \"max\"\n\n[tenant.default]\n");
}

TEST_CASE("an edit adds a limit where its table is") {
    CHECK(edited("version = 1\n[process.\"*\"]\n  qp = 1 # one\n\n# end\n",
                 {{"", Scope::process, "*", Resource::cq}, 2}) ==
          "version = 1\n[process.\"*\"]\n  qp = 1 # one\n  cq = 2\n\n# end\n");
    CHECK(edited("version = 1\n[process.\"*\"] # all\n# qp = 1\n",
                 {{"", Scope::process, "*", Resource::mr_bytes}, 4096}) ==
          "version = 1\n[process.\"*\"] # all\nmr_bytes = \"4KiB\"\n# qp = 1\n");
    CHECK(edited("version = 1\ntenant.default.rxe0.qp = 1", {{"default", Scope::tenant, "rxe0", Resource::cq}, 2}) ==
          "version = 1\ntenant.default.rxe0.qp = 1\ntenant.default.rxe0.cq = 2\n");
    CHECK(edited("version = 1\n[process]\n\"*\" = { qp = 1 }\n", {{"", Scope::process, "*", Resource::cq}, 2}) ==
          "version = 1\n[process]\n\"*\" = { qp = 1, cq = 2 }\n");
    CHECK(edited("version = 1\n[process]\n\"*\" = {} # none\n", {{"", Scope::process, "*", Resource::cq}, 2}) ==
          "version = 1\n[process]\n\"*\" = { cq = 2 } # none\n");
}

TEST_CASE("an edit of a guarantee or a soft limit keeps what stands beside it") {
    const auto part = [](const std::string& text, LimitPart which, std::uint64_t amount) {
        return edited("version = 1\n[tenant.t.\"*\"]\n" + text, {qp_of("t"), amount, which});
    };
    const std::string head = "version = 1\n[tenant.t.\"*\"]\n";
    CHECK(part("qp = 9 # nine\n", LimitPart::soft, 5) == head + "qp = { limit = 9, soft = 5 } # nine\n");
    CHECK(part("qp = { limit = 9, soft = 5 }\n", LimitPart::soft, 6) == head + "qp = { limit = 9, soft = 6 }\n");
    CHECK(part("qp = { limit = 9, soft = 5 }\n", LimitPart::guarantee, 3) ==
          head + "qp = { limit = 9, soft = 5, guarantee = 3 }\n");
    CHECK(part("qp = { guarantee = 3 }\n", LimitPart::limit, 9) == head + "qp = { guarantee = 3, limit = 9 }\n");
    CHECK(part("cq = 1\n", LimitPart::guarantee, 3) == head + "cq = 1\nqp = { guarantee = 3 }\n");
    CHECK(edited("version = 1\n", {qp_of("t"), 3, LimitPart::guarantee}) ==
          "version = 1\n\n[tenant.t.\"*\"]\nqp = { guarantee = 3 }\n");
    CHECK_FALSE(edit_policy("version = 1\n", "p.toml", {{qp_of("t", Scope::process), 3, LimitPart::soft}}));
    CHECK_FALSE(edit_policy("version = 1\n", "p.toml", {{qp_of("t/{user}"), 3, LimitPart::guarantee}}));
}

TEST_CASE("an edit adds a table at the end, in the file's line ends") {
    CHECK(edited("version = 1\n", {{"default", Scope::tenant, "mlx5_0", Resource::qp}, 3}) ==
          "version = 1\n\n[tenant.default.\"mlx5_0\"]\nqp = 3\n");
    CHECK(edited("version = 1\r\n[process.\"*\"]\r\nqp = 1", {{"", Scope::process, "total", Resource::qp}, 3}) ==
          "version = 1\r\n[process.\"*\"]\r\nqp = 1\r\n\r\n[process.\"total\"]\r\nqp = 3\r\n");
    CHECK(edited("\xef\xbb\xbfversion = 1\n[process.\"*\"]\nqp = 1\n", {{"", Scope::process, "*", Resource::qp}, 3}) ==
          "\xef\xbb\xbfversion = 1\n[process.\"*\"]\nqp = 3\n");
}

TEST_CASE("an edit that does not fit the layout is refused with the lines to add") {
    const auto result =
        edit_policy("version = 1\nprocess = {}\n", "p.toml", {{{"", Scope::process, "*", Resource::qp}, 3}});
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error(), Catch::Contains("by hand: [process.\"*\"] qp = 3"));
    CHECK_FALSE(edit_policy("version = 1\n", "p.toml", {{{"", Scope::process, "a\"b", Resource::qp}, 3}}));
    CHECK_FALSE(edit_policy("broken", "p.toml", {{{"", Scope::process, "*", Resource::qp}, 3}}));
}

TEST_CASE("persist replaces the file, keeps its mode, and follows a link") {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", "version = 1\n[process.\"*\"]\nqp = 1\n");
    REQUIRE(::chmod(path.c_str(), 0640) == 0);
    const auto link = directory / "link.toml";
    fs::create_symlink("p.toml", link);

    REQUIRE(persist_policy(
        link, {{{"", Scope::process, "*", Resource::qp}, 2}, {{"", Scope::process, "*", Resource::cq}, 3}}));
    CHECK(contents(path) == "version = 1\n[process.\"*\"]\nqp = 2\ncq = 3\n");
    CHECK(fs::is_symlink(link));
    CHECK(static_cast<unsigned>(fs::status(path).permissions()) == 0640);
    CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 2);
}

TEST_CASE("persist refuses what a conf.d file would override, and changes nothing") {
    const TemporaryDirectory directory;
    const std::string text = "version = 1\n[process.\"*\"]\nqp = 1\n";
    const auto path = write(directory, "p.toml", text);
    const auto fragment = write(directory, "conf.d/10.toml", "[process.\"*\"]\nqp = 5\n");

    const auto refused = persist_policy(
        path, {{{"", Scope::process, "*", Resource::cq}, 2}, {{"", Scope::process, "*", Resource::qp}, 2}});
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error(), Catch::StartsWith(fragment + ":2:6: "));
    CHECK(contents(path) == text);
    CHECK(persist_policy(path, {{{"", Scope::process, "*", Resource::cq}, 2}}));
}

TEST_CASE("persist of a broken or missing file changes nothing") {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", "version = 1\nbroken\n");
    CHECK_FALSE(persist_policy(path, {{{"", Scope::process, "*", Resource::qp}, 2}}));
    CHECK(contents(path) == "version = 1\nbroken\n");
    CHECK_FALSE(persist_policy(directory / "none.toml", {{{"", Scope::process, "*", Resource::qp}, 2}}));
}

TEST_CASE("an edit finds the table of each holder, in each form") {
    const std::string both = "version = 1\n[tenant.\"physics/atlas\"]\n\"*\" = { qp = 1 }\nprocess.\"*\".qp = 2\n";
    CHECK(edited(both, {qp_of("physics/atlas"), 3}) ==
          "version = 1\n[tenant.\"physics/atlas\"]\n\"*\" = { qp = 3 }\nprocess.\"*\".qp = 2\n");
    CHECK(edited(both, {qp_of("physics/atlas", Scope::process), 3}) ==
          "version = 1\n[tenant.\"physics/atlas\"]\n\"*\" = { qp = 1 }\nprocess.\"*\".qp = 3\n");
    CHECK(edited(both, {{"physics/atlas", Scope::process, "*", Resource::cq}, 4}) ==
          "version = 1\n[tenant.\"physics/atlas\"]\n\"*\" = { qp = 1 }\nprocess.\"*\".qp = 2\nprocess.\"*\".cq = 4\n");
    CHECK(edited("version = 1\n['node'.'*']\nqp = 1\n", {qp_of("node"), 3}) == "version = 1\n['node'.'*']\nqp = 3\n");
    CHECK(edited("version = 1\ntenant.'a\\b'.'*'.qp = 1\n", {qp_of("a\\b"), 3}) ==
          "version = 1\ntenant.'a\\b'.'*'.qp = 3\n");
}

TEST_CASE("an edit adds the table of each holder, with quotes where TOML needs them") {
    const auto added = [](const LimitKey& key) {
        const std::string text = "version = 1\n";
        const auto result = edited(text, {key, 3});
        REQUIRE_THAT(result, Catch::StartsWith(text + "\n") && Catch::EndsWith("\nqp = 3\n"));
        return result.substr(text.size() + 1, result.size() - text.size() - 9);
    };
    CHECK(added(qp_of("", Scope::process)) == "[process.\"*\"]");
    CHECK(added(qp_of("node")) == "[node.\"*\"]");
    CHECK(added(qp_of("default")) == "[tenant.default.\"*\"]");
    CHECK(added(qp_of("default", Scope::process)) == "[tenant.default.process.\"*\"]");
    CHECK(added(qp_of("physics/atlas")) == "[tenant.\"physics/atlas\".\"*\"]");
    CHECK(added(qp_of("physics/atlas", Scope::process)) == "[tenant.\"physics/atlas\".process.\"*\"]");
    CHECK(added(qp_of("a\\b")) == "[tenant.\"a\\\\b\".\"*\"]");
    CHECK(added({"default", Scope::process, "mlx5_0/1", Resource::qp}) == "[tenant.default.process.\"mlx5_0/1\"]");
}

TEST_CASE("an edit keeps what a tenant has beside its limits") {
    const std::string text =
        "version = 1\n[tenant.b]\nmatch = [{ user = \"u\" }]\nmode = \"audit\"\n[tenant.a]\nmatch = [{ user = \"v\" "
        "}]\n";
    CHECK(edited(text, {qp_of("a"), 3}) == text + "\n[tenant.a.\"*\"]\nqp = 3\n");
    CHECK(edited(text, {qp_of("new"), 3}) == text + "\n[tenant.new.\"*\"]\nqp = 3\n");
}

TEST_CASE("an edit of a limit that the file cannot have is refused") {
    CHECK_THAT(edit_policy("version = 1\n", "p.toml", {{qp_of(""), 3}}).error(), Catch::Contains("names no tenant"));
    CHECK_THAT(edit_policy("version = 1\n", "p.toml", {{{"a", Scope::tenant, "process", Resource::qp}, 3}}).error(),
               Catch::Contains("unchanged, since the policy would be wrong: p.toml:4:1: qp needs a device"));
    CHECK_FALSE(edit_policy("version = 1\n", "p.toml", {{qp_of("a b"), 3}}));
    CHECK_FALSE(edit_policy("version = 1\ntenant = {}\n", "p.toml", {{qp_of("a"), 3}}));
}

TEST_CASE("persist refuses what a conf.d file says of a tenant, and what makes the policy wrong") {
    const TemporaryDirectory directory;
    const std::string text = "version = 1\n[tenant.a]\nmatch = [{ user = \"u\" }]\n";
    const auto path = write(directory, "p.toml", text);
    const auto fragment = write(directory, "conf.d/10.toml", "[tenant.a.process.\"*\"]\nqp = 5\n");

    CHECK_THAT(persist_policy(path, {{qp_of("a", Scope::process), 3}}).error(),
               Catch::StartsWith(fragment + ":2:6: qp for '*' is set here and wins over " + path));
    const auto below = persist_policy(path, {{qp_of("a/b"), 3}});
    REQUIRE_FALSE(below);
    CHECK_THAT(below.error(), Catch::StartsWith(path + ": unchanged, since the policy would be wrong: ") &&
                                  Catch::Contains("tenant 'a' has no processes"));
    CHECK(contents(path) == text);
    CHECK(persist_policy(path, {{qp_of("a"), 3}}));
    CHECK(contents(path) == text + "\n[tenant.a.\"*\"]\nqp = 3\n");
}

TEST_CASE("an edit removes the table that it empties, where that says nothing") {
    const std::string head = "version = 1\n[tenant.\"u/{user}\"]\nmatch = [{ user = \"*\" }]\n[tenant.\"u/{user}\".\"*\"]\nqp = 9\n";
    for (const auto& key : {qp_of("default"), qp_of("node"), qp_of("u/ann"), qp_of("u/{user}", Scope::process)}) {
        INFO(key.tenant);
        CHECK(edited(edited(head, {key, 3}), {key, unset}) == head);
        CHECK(edited(edited(head, {key, 3}) + "\n[process.\"*\"]\ncq = 1\n", {key, unset}) == head + "\n[process.\"*\"]\ncq = 1\n");
    }
    const std::string made = head + "\n[tenant.blue.\"*\"]\n", noted = head + "\n[node.\"*\"]\n# of all\n";
    CHECK(edited(made + "qp = 3\n", {qp_of("blue"), unset}) == made);  // this table makes the tenant
    CHECK(edited(noted + "qp = 3\n", {qp_of("node"), unset}) == noted);
}

TEST_CASE("an edit writes percentages, and leaves all as it is") {
    const std::string head = "version = 1\n[tenant.t.\"*\"]\nall = \"25%\"\n";
    CHECK(edited(head, {qp_of("t"), percentage(125)}) == head + "qp = \"12.5%\"\n");
    CHECK(edited(head + "qp = 4\n", {qp_of("t"), unset}) == head);  // 25% again
    const auto refused = edit_policy(head, "p.toml", {{qp_of("t"), unset}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == "p.toml: [tenant.t.\"*\"] limits qp by all = \"25%\" only; set another limit, or change that line by hand");
}
