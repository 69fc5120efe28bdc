// The listings of `rdmaquota show` that fit a screen.
#include <catch2/catch.hpp>

#include "tools/common/views/json.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/rdmaquota/view/summary.hpp"

using namespace rdmaquota;
using Catch::Contains;

namespace {

ResourceView used(Resource resource, std::uint64_t usage, std::uint64_t limit = unlimited) { return {resource, usage, limit, usage}; }

TenantReading tenant(std::string name, std::vector<DeviceView> devices, std::vector<ProcessView> processes = {}) {
    TenantReading reading{};
    reading.view = {std::move(name), Mode::enforce, 100, std::move(devices), {}, std::move(processes)};
    return reading;
}

std::vector<TenantReading> three() {
    return {tenant("b", {{"rxe0", {used(Resource::qp, 5, 10), used(Resource::mr, 70)}}, {"rxe1", {used(Resource::qp, 8, 9)}}},
                   {{7, 1000, "x", {{"rxe0", {used(Resource::qp, 5)}}}, {}}}),
            tenant("a", {{"rxe0", {used(Resource::qp, 3), used(Resource::mr, 4, 4)}}}, {{8, 0, "y", {}, {}}}),
            tenant("c", {{"rxe0", {used(Resource::qp, 0, 4)}}, {"total", {used(Resource::qp, 0, 4)}}})};
}

std::vector<std::string> names(const std::vector<SummaryLine>& lines) {
    std::vector<std::string> all;
    for (const auto& line : lines) all.push_back(line.tenant);
    return all;
}

}  // namespace

TEST_CASE("summary: one line per tenant, the fullest first, with what is used on all devices") {
    const auto lines = summarize(three(), {});
    CHECK(names(lines) == std::vector<std::string>{"a", "b", "c"});
    REQUIRE(lines[1].fullest);
    CHECK(lines[1].fullest->device == "rxe1");
    CHECK(lines[1].usage[index(Resource::qp)] == 13);
    CHECK_FALSE(lines[2].fullest);
    CHECK_FALSE(lines[2].uses_something());
    const auto text = summary_table(lines, 2, {}).text({});
    CHECK_THAT(text, Contains("a         100   3   0   4         0      1  4 of 4 mr on rxe0"));
    CHECK_THAT(text, Contains("b          89  13   0  70         0      1  8 of 9 qp on rxe1"));
    CHECK_THAT(text, !Contains("c "));
}

TEST_CASE("summary: the sum over devices is not added to the devices") {
    const auto lines = summarize({tenant("a", {{"rxe0", {used(Resource::qp, 3)}}, {"total", {used(Resource::qp, 3, 4)}}})}, {});
    CHECK(lines[0].usage[index(Resource::qp)] == 3);
    CHECK(lines[0].fullest->device == "total");
}

TEST_CASE("summary: sorted by name, or by what is used of a resource; no other order is known") {
    CHECK(names(summarize(three(), *summary_order("name"))) == std::vector<std::string>{"a", "b", "c"});
    CHECK(names(summarize(three(), *summary_order("qp"))) == std::vector<std::string>{"b", "a", "c"});
    CHECK(summary_order("full"));
    CHECK_FALSE(summary_order("fullest"));
}

TEST_CASE("a listing is narrowed to devices, resources and a user") {
    auto tenants = three();
    narrow(tenants, {{"rxe1"}, {}, {}});
    REQUIRE(tenants.size() == 1);
    CHECK(tenants[0].view.devices.size() == 1);
    CHECK(tenants[0].view.processes.empty());
    tenants = three();
    narrow(tenants, {{}, {Resource::mr}, {}});
    CHECK(tenants.size() == 2);
    CHECK(tenants[0].view.devices.size() == 1);
    tenants = three();
    narrow(tenants, {{}, {}, 1000});
    REQUIRE(tenants.size() == 1);
    CHECK(tenants[0].view.name == "b");
    CHECK(tenants[0].view.devices.size() == 2);
    narrow(tenants, {{}, {}, 1001});
    CHECK(tenants.empty());
    tenants = three();
    for (auto& tenant : tenants)
        tenant.view.rates = {{"rxe1", Resource::commands_per_s, 5, 5, 5}, {"rxe2", Resource::registered_per_s, 5, 5, 5}};
    narrow(tenants, {{"rxe1"}, {Resource::commands_per_s}, {}});
    REQUIRE(tenants.size() == 3);
    CHECK(tenants[0].view.rates.size() == 1);
}

TEST_CASE("what was denied of late is told once for each tenant, device and resource, most often first") {
    const auto event = [](const char* time, const char* tenant, unsigned count, const char* kind = "denied") {
        return std::pair<const std::string, Json>{
            time, Json{{"time", time}, {"kind", kind}, {"tenant", tenant}, {"resource", "qp"}, {"device", "rxe0"}, {"count", count}}};
    };
    const EventsByTime events{event("2026-01-31T11:59:59.0Z", "a", 90), event("2026-01-31T12:00:00.0Z", "a", 1),
                                   event("2026-01-31T12:10:00.0Z", "b", 2), event("2026-01-31T12:20:00.0Z", "b", 3),
                                   event("2026-01-31T12:20:00.0Z", "b", 30, "reaped"), {"", Json{{"kind", 7}}}};
    CHECK(denial_lines(events, "2026-01-31T12:00:00.0Z") ==
          std::vector<std::string>{"b: qp on rxe0, 5 times", "a: qp on rxe0, 1 time"});
}
