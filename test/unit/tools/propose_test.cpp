// What `rdmaquota init` and `rdmaquota suggest` propose.
#include <catch2/catch.hpp>

#include "policy/limit.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/propose/limits.hpp"
#include "tools/rdmaquota/propose/recipe.hpp"

using namespace rdmaquota;
using Catch::Contains;

namespace {

NodeFigures node() {
    NodeFigures figures;
    figures.device[index(Resource::qp)] = 1000;
    figures.memory = 64ULL << 30;
    return figures;
}

TenantView tenant(ResourceView view) {
    TenantView tenant{"a", Mode::enforce, 100, {}, {}, {}};
    view.configured = view.limit;
    tenant.devices = {{"rxe0", {view}}};
    return tenant;
}

std::pair<const std::string, Json> denied(std::uint64_t limit, const char* scope = "tenant", const char* time = "2026-01-02T00:00:00Z", Json reason = nullptr) {
    return {time, Json{{"kind", "denied"}, {"time", time}, {"tenant", "a"}, {"device", "rxe0"}, {"resource", "qp"},
                       {"scope", scope}, {"limit", limit}, {"count", 7U}, {"reason", std::move(reason)}}};
}

constexpr const char* since = "2026-01-01T00:00:00Z";

}  // namespace

TEST_CASE("a recipe's numbers become those parts of the node that its remarks name") {
    CHECK(scaled("qp = 4096    # 1/4 of the device's", node()) == "qp = 250                             # 1/4 of the device's\n");
    CHECK_THAT(scaled("qp = { limit = 190, guarantee = 3 } # 3/4 and 1/8 of the device's; x", node()),
               Contains("qp = { limit = 750, guarantee = 125 }") && Contains("; x"));
    CHECK_THAT(scaled("mr_bytes = \"9GiB\"   # 1/8 of the node's memory", node()), Contains("mr_bytes = \"8GiB\""));
}

TEST_CASE("numbers without a remark, and those of a figure that is not known, stay") {
    for (const std::string line : {"hca_handle = 256", "cq = 10   # 1/2 of the device's", "weight = 200   # twice as much", "# 1/2 of the device's"})
        CHECK(scaled(line, node()) == line + "\n");
    CHECK(scaled("qp = 4096 # 1/4 of the device's", {}) == "qp = 4096 # 1/4 of the device's\n");
    NodeFigures tiny;
    tiny.device[index(Resource::qp)] = 3;
    CHECK_THAT(scaled("qp = 4096 # 1/4 of the device's", tiny), Contains("qp = 1 "));
    tiny.device[index(Resource::qp)] = 1'048'560;
    CHECK_THAT(scaled("qp = 4096 # 7/8 of the device's", tiny), Contains("qp = 917000 "));
}

TEST_CASE("the recipe of teams gets a tenant for each group, and no other") {
    const auto text = with_groups(std::string(recipes()[1].text), {"television", "b.c", "d"});
    for (const auto* name : {"[tenant.\"television\"]", "[tenant.\"b.c\".\"*\"]", "group = \"d\""}) CHECK_THAT(text, Contains(name));
    CHECK_THAT(text, !Contains("\"vision\"") && !Contains("language"));
    CHECK(with_groups(std::string(recipes()[1].text), {}) == recipes()[1].text);
    CHECK_THAT(with_groups(std::string(recipes()[1].text), {"one"}), !Contains("language"));
}

TEST_CASE("what was denied by the policy's limit is proposed twice, with how often") {
    const auto proposals = propose({tenant({Resource::qp, 64, 64, 64})}, {denied(64), denied(64)}, since);
    REQUIRE(proposals.size() == 1);
    CHECK(proposals[0].limit == 128);
    CHECK(proposals[0].now == 64);
    CHECK(proposals[0].why == "denied 14 times");
    const auto of_process = propose({}, {denied(4, "process_total")}, since);
    REQUIRE(of_process.size() == 1);
    CHECK(of_process[0].scope == Scope::process);
    CHECK(of_process[0].device == "total");
}

TEST_CASE("what was denied before, by a share or by a rule changes nothing") {
    CHECK(propose({}, {denied(64, "tenant", "2025-12-31T00:00:00Z"), denied(64, "tenant", "2026-01-02T00:00:00Z", "grant"), {"", Json{{"kind", 7}}}}, since).empty());
}

TEST_CASE("what has no limit, or one that is far from its peak, is proposed four times the peak") {
    const auto unlimited_qp = propose({tenant({Resource::qp, 0, unlimited, 100})}, {}, since);
    REQUIRE(unlimited_qp.size() == 1);
    CHECK(unlimited_qp[0].limit == 512);  // rounded up
    CHECK(unlimited_qp[0].why == "no limit; 100 at most so far");
    CHECK(propose({tenant({Resource::qp, 0, 4096, 100})}, {}, since).at(0).limit == 512);
    CHECK(propose({tenant({Resource::qp, 0, 1000, 100})}, {}, since).empty());
    CHECK(propose({tenant({Resource::qp, 0, unlimited, 0})}, {}, since).empty());
    CHECK(propose({tenant({Resource::ah, 0, unlimited, 100})}, {}, since).empty());
    CHECK(propose({tenant({Resource::mr_bytes, 0, unlimited, 1 << 20})}, {}, since).at(0).limit == 4 << 20);
}
