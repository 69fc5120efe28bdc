#include <catch2/catch.hpp>

#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/web/churn_rates.hpp"
#include "tools/rdmaquotad/web/doctor_findings.hpp"
#include "tools/rdmaquotad/web/state_text.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

TenantView tenant(std::string name) { return {std::move(name), Mode::enforce, 100, {}, {}, {}}; }

ProcessView process(std::uint32_t pid, std::uint64_t qps, std::string comm = "p") {
    return {pid, 1000, std::move(comm), {{"rxe0", {{Resource::qp, qps, unlimited, {}}}}}, {}};
}

Json state_of(const std::vector<const TenantView*>& views, std::size_t most = 5) {
    return Json::parse("{" + StateText(views, most).text([](uid_t user) { return "u" + std::to_string(user); }) + "}");
}

Churn::Counts made(std::uint64_t created, std::uint64_t destroyed) {
    Churn::Counts counts;
    counts.created[index(Resource::qp)] = created;
    counts.destroyed[index(Resource::qp)] = destroyed;
    return counts;
}

}  // namespace

TEST_CASE("the page's state has a tenant's figures by place") {
    auto view = tenant("physics/atlas");
    view.devices = {{"rxe0", {{Resource::qp, 30, 20, 40, 50, Reason::grant, 5, 25, 0, 60}}},
                    {"rxe1", {{Resource::cq, 1, unlimited, {}}}}};
    const auto state = state_of({&view});
    CHECK(state["devices"] == Json{"rxe0", "rxe1"});
    const auto& shown = state["tenants"][0];
    CHECK(shown["name"] == "physics/atlas");
    CHECK(shown["parent"] == "physics");
    // device, resource, used, limit, configured, guarantee, soft, grace left, peak, debt, earmarked, reason
    CHECK(shown["cells"][0].dump() ==
          "[0," + std::to_string(index(Resource::qp)) + ",30,20,50,5,25,0,40,10,0,\"grant\"]");
    CHECK(shown["cells"][1].dump() ==
          "[1," + std::to_string(index(Resource::cq)) + ",1,null,null,0,null,null,null,0,0,null]");
    CHECK(state["resources"][index(Resource::qp)] == Json({"qp", "count", info(Resource::qp).counts}));
}

TEST_CASE("the page's state has a tenant's rates, and what they delayed") {
    auto view = tenant("physics");
    view.rates = {{"rxe0", Resource::registered_per_s, 2000, 4000, unlimited, Reason::grant, {412, 3'250'000'000}},
                  {"rxe1", Resource::commands_per_s, 5, 5, 10}};
    const auto state = state_of({&view});
    CHECK(state["rates"][1] == Json({"registered_per_s", "bytes", info(Resource::registered_per_s).counts}));
    CHECK(state["tenants"][0]["rates"] == Json::parse(R"([[0,1,2000,4000,null,412,3250,"grant"],[1,0,5,5,10,0,0,null]])"));
}

TEST_CASE("names from outside cannot leave their strings") {
    auto view = tenant("default");
    view.devices = {{"\"}],<b>\x1b\n\\", {{Resource::qp, 1, unlimited, {}}}}};
    view.processes = {process(1, 2, "\xff\"]\0"), process(2, 1, "</script>")};
    const auto state = state_of({&view});
    CHECK(state["devices"][0] == "\"}],<b>\x1b\n\\");
    CHECK(state["top"][0][4] == "\xef\xbf\xbd\"]");
    CHECK(state["top"][1][4] == "</script>");
}

TEST_CASE("of each device and resource the processes are named that use most, whosesoever they are") {
    auto one = tenant("a"), other = tenant("b"), sum = tenant("node");
    one.processes = {process(1, 5), process(2, 50), process(3, 0)};
    other.processes = {process(4, 20), process(5, 1)};
    sum.is_sum = true;
    sum.processes = {process(9, 999)};
    const auto state = state_of({&one, &other, &sum}, 3);
    std::vector<std::uint32_t> pids, tenants;
    for (const auto& use : state["top"]) {
        pids.push_back(use[3].get<std::uint32_t>());
        tenants.push_back(use[2].get<std::uint32_t>());
    }
    CHECK(pids == std::vector<std::uint32_t>{2, 4, 1});
    CHECK(tenants == std::vector<std::uint32_t>{0, 1, 0});
    CHECK(state["tenants"][2]["parent"].is_null());
}

TEST_CASE("a process that uses most has its user, and no pid where the node's is not known") {
    auto view = tenant("a");
    view.processes = {process(700, 9), process(0, 5), process(800, 3)};
    view.processes[1].inner_pid = 1;
    view.processes[2].inner_pid = 1;
    const auto state = state_of({&view});
    CHECK(state["top"][0][3] == 700);
    CHECK(state["top"][0][6] == "u1000");
    CHECK(state["top"][0][7].is_null());
    CHECK(state["top"][1][3].is_null());
    CHECK(state["top"][1][7] == 1);
    CHECK(state["top"][2][3] == 800);
    CHECK(state["top"][2][7] == 1);
}

TEST_CASE("churn is a rate over the last seconds") {
    ChurnRates rates;
    const ChurnRates::Clock::time_point start{1h};
    const auto at = [&](int second, std::uint64_t created, std::uint64_t destroyed) {
        rates.add(start + std::chrono::seconds(second), {{{"lab", "rxe0"}, made(created, destroyed)}});
    };
    at(0, 1000, 900);
    at(3, 1300, 900);
    CHECK(rates.all().empty());
    at(5, 1500, 1000);
    at(6, 1600, 1060);
    REQUIRE(rates.all().size() == 1);
    CHECK(rates.all()[0].tenant == "lab");
    CHECK(rates.all()[0].created == 100);
    CHECK(rates.all()[0].destroyed == Approx(160 / 6.0));
    for (int second = 7; second < 30; ++second) at(second, 1600, 1060);
    CHECK(rates.all().empty());
    at(30, 5, 5);  // a tenant of that name that came again
    CHECK(rates.all().empty());
}

TEST_CASE("doctor's findings are null until it has ended, and where there is none") {
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", "/nonexistent", 1);
    DoctorFindings findings("/nonexistent");
    CHECK(findings.all().is_null());
    CHECK(findings.all().is_null());
    ::setenv("PATH", path.c_str(), 1);
}
