#include <catch2/catch.hpp>

#include "tools/rdmaquotad/serve/request.hpp"

using namespace rdmaquota;

namespace {

std::string error_of(std::string_view line) {
    const auto request = parse_request(line);
    return request ? "" : request.error();
}

}  // namespace

TEST_CASE("requests of each kind are read") {
    for (const auto* kind : {"status", "stats", "events", "subscribe", "history", "instance"}) {
        const auto request = parse_request(std::string(R"({"version":1,"request":")") + kind + "\"}");
        REQUIRE(request);
        CHECK(name(request->kind) == kind);
    }
    CHECK(parse_request(R"({"version":1,"request":"process","pid":4711})")->pid == 4711);
    CHECK(parse_request(R"({"version":1,"request":"events","since":7})")->since == 7);
    const auto history = parse_request(
        R"({"version":1,"request":"history","device":"rxe0","resource":"qp","tenant":"physics"})");
    REQUIRE(history);
    CHECK(history->tenant == "physics");
    CHECK(history->device == "rxe0");
    CHECK(history->resource == "qp");
}

TEST_CASE("a request to set limits is read") {
    const auto request = parse_request(
        R"({"version":1,"request":"set","device":"mlx5_0","scope":"process",)"
        R"("limits":{"qp":10,"mr_bytes":"4GiB","cq":null}})");
    REQUIRE(request);
    REQUIRE(request->changes.size() == 3);
    CHECK(request->changes[0].key == LimitKey{"", Scope::process, "mlx5_0", Resource::qp});
    CHECK(request->changes[0].limit == 10);
    CHECK(request->changes[1].limit == std::uint64_t{4} << 30);
    CHECK(request->changes[2].limit == unlimited);
}

TEST_CASE("a request to set or unset limits may name a tenant") {
    const auto set = parse_request(
        R"({"version":1,"request":"set","tenant":"physics/atlas","device":"*","limits":{"qp":10}})");
    REQUIRE(set);
    CHECK(set->changes[0].key == LimitKey{"physics/atlas", Scope::tenant, "*", Resource::qp});
    const auto back = parse_request(
        R"({"version":1,"request":"unset","tenant":"physics","device":"rxe0","resources":["qp","cq"]})");
    REQUIRE(back);
    REQUIRE(back->changes.size() == 2);
    CHECK(back->changes[1].key == LimitKey{"physics", Scope::tenant, "rxe0", Resource::cq});
}

TEST_CASE("what is no request is refused with its reason") {
    CHECK(error_of("") == "a request is one line with a JSON object");
    CHECK(error_of("[1]") == "a request is one line with a JSON object");
    CHECK(error_of(std::string(10'000, '[')) == "a request is one line with a JSON object");
    CHECK(error_of("{\"version\":1,\"request\":\"st\xff\"}") == "a request is one line with a JSON object");
    CHECK(error_of(R"({"request":"stats"})").find("version") != std::string::npos);
    CHECK(error_of(R"({"version":2,"request":"stats"})").find("version 1") != std::string::npos);
    CHECK(error_of(R"({"version":1})").find("must be one of status, stats") != std::string::npos);
    CHECK(error_of(R"({"version":1,"request":7})").find("must be one of") != std::string::npos);
    CHECK(error_of(R"({"version":1,"request":"process","pid":-1})").find("pid") != std::string::npos);
    CHECK(error_of(R"({"version":1,"request":"process","pid":4294967296})").find("pid") != std::string::npos);
    CHECK(error_of(R"({"version":1,"request":"history","resource":"qps"})") == "there is no resource 'qps'");
}

TEST_CASE("wrong limits are refused with their reason") {
    const auto set = [](const std::string& rest) { return error_of(R"({"version":1,"request":"set",)" + rest + "}"); };
    CHECK(set(R"("limits":{"qp":1})").find("needs a \"device\"") != std::string::npos);
    CHECK(set(R"("device":"a b","limits":{"qp":1})").find("needs a \"device\"") != std::string::npos);
    CHECK(set(R"("device":"rxe0")").find("needs \"limits\"") != std::string::npos);
    CHECK(set(R"("device":"rxe0","limits":{})").find("needs \"limits\"") != std::string::npos);
    CHECK(set(R"("device":"rxe0","limits":{"qp":-1})").find("whole number") != std::string::npos);
    CHECK(set(R"("device":"rxe0","limits":{"qp":1.5})").find("whole number") != std::string::npos);
    CHECK(set(R"("device":"rxe0","limits":{"qp":"x"})").find("'x'") != std::string::npos);
    CHECK(set(R"("device":"rxe0/1","limits":{"cq":1})") != "");
    CHECK(set(R"("device":"rxe0","limits":{"qp":1},"scope":"all")").find("scope") != std::string::npos);
}

TEST_CASE("wrong resources to unset are refused with their reason") {
    const auto back = [](const std::string& rest) {
        return error_of(R"({"version":1,"request":"unset",)" + rest + "}");
    };
    CHECK(back(R"("resources":["qp"])").find("needs a \"device\"") != std::string::npos);
    CHECK(back(R"("device":"rxe0")").find("needs \"resources\"") != std::string::npos);
    CHECK(back(R"("device":"rxe0","resources":[])").find("needs \"resources\"") != std::string::npos);
    CHECK(back(R"("device":"rxe0","resources":["qps"])").find("qps") != std::string::npos);
    CHECK(back(R"("device":"rxe0","resources":[7])").find("no resource") != std::string::npos);
    CHECK(back(R"("device":"rxe0","resources":["qp"],"tenant":7)").find("tenant") != std::string::npos);
}

TEST_CASE("only what changes something needs privilege") {
    CHECK(needs_privilege(RequestKind::set));
    CHECK(needs_privilege(RequestKind::unset));
    CHECK_FALSE(needs_privilege(RequestKind::instance));
    CHECK_FALSE(needs_privilege(RequestKind::stats));
    CHECK_FALSE(needs_privilege(RequestKind::subscribe));
}

TEST_CASE("a request may set limits in percent") {
    const auto request = parse_request(R"({"version":1,"request":"set","device":"*","limits":{"qp":10,"all":"25%"}})");
    REQUIRE(request);
    const auto limit = [&](Resource resource) {
        for (const auto& change : request->changes)
            if (change.key.resource == resource) return change.limit;
        return unset;
    };
    CHECK(limit(Resource::qp) == 10);
    CHECK(limit(Resource::cq) == percentage(250));
    CHECK_FALSE(parse_request(R"({"version":1,"request":"set","device":"*","limits":{"all":10}})"));
}
