// The tables of `rdmaquota top`.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tools/rdmaquota/view/top_view.hpp"

using namespace rdmaquota;
using Catch::Contains;

namespace {

ResourceView used(Resource resource, std::uint64_t usage, std::uint64_t limit = unlimited) {
    return {resource, usage, limit, usage};
}

TenantView tenant(std::string name, std::vector<ResourceView> on_rxe0) {
    TenantView view{std::move(name), Mode::enforce, 100, {}, {}, {}};
    view.devices = {{"rxe0", std::move(on_rxe0)}};
    return view;
}

std::string text(const TopTable& table, std::size_t row, const std::string& column) {
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        if (table.columns[i].name == column) return table.rows.at(row).at(i).text;
    return "no such column";
}

std::vector<std::string> laid_out(TopTable table, TopState state = {5, false, 0}, std::size_t width = 200,
                                  std::size_t height = 24) {
    return lay_out(table, state, width, height, {});
}

}  // namespace

TEST_CASE("top: a tenant's line has what is used, and nothing of 0 of 0 is full") {
    const auto table = top_table({tenant("a", {used(Resource::qp, 50, 200), used(Resource::cq, 0, 10),
                                               used(Resource::pd, 0, 0), used(Resource::mr, 3)})},
                                 TopView::tenant);
    REQUIRE(table.rows.size() == 2);
    CHECK(text(table, 0, "RESOURCE") == "qp");
    CHECK(text(table, 0, "FULL%") == "25");
    CHECK(text(table, 1, "FULL%") == "-");
    const auto devices = top_table({tenant("a", {used(Resource::pd, 0, 0)})}, TopView::device);
    REQUIRE(devices.rows.size() == 1);
    CHECK(text(devices, 0, "FULL%") == "-");
    CHECK(text(top_table({tenant("a", {used(Resource::pd, 3, 0)})}, TopView::tenant), 0, "FULL%") == "100");
}

TEST_CASE("top: the fullest are first, and of equals those that use most") {
    const auto lines =
        laid_out(top_table({tenant("idle", {used(Resource::qp, 1, 10)}), tenant("small", {used(Resource::qp, 7)}),
                            tenant("large", {used(Resource::qp, 9)}), tenant("full", {used(Resource::qp, 4, 4)})},
                           TopView::tenant));
    REQUIRE(lines.size() == 5);
    CHECK_THAT(lines[1], Catch::StartsWith("full"));
    CHECK_THAT(lines[2], Catch::StartsWith("idle"));
    CHECK_THAT(lines[3], Catch::StartsWith("large"));
    CHECK_THAT(lines[4], Catch::StartsWith("small"));
}

TEST_CASE("top: words rise, r turns them, and the state stays within bounds") {
    const auto table =
        top_table({tenant("b", {used(Resource::qp, 1)}), tenant("a", {used(Resource::qp, 1)})}, TopView::tenant);
    CHECK_THAT(laid_out(table, {0, false, 0})[1], Catch::StartsWith("a"));
    CHECK_THAT(laid_out(table, {0, true, 0})[1], Catch::StartsWith("b"));
    auto copy = table;
    TopState state{99, false, 99};
    CHECK(lay_out(copy, state, 80, 2, {}).size() == 2);
    CHECK(state.sort == table.columns.size() - 1);
    CHECK(state.offset == 1);
}

TEST_CASE("top: of a process each device is a line, and sums over devices show only what is limited") {
    auto view = tenant("a", {});
    view.processes = {
        {4711, 0, "train.py", {{"rxe0", {used(Resource::qp, 2, 4)}}, {"total", {used(Resource::qp, 2, 8)}}}, {}}};
    const auto table = top_table({view}, TopView::process);
    REQUIRE(table.rows.size() == 2);
    CHECK(text(table, 0, "FULL%") == "50");
    CHECK(text(table, 0, "CQ") == "0");
    CHECK(text(table, 1, "QP") == "2");
    CHECK(text(table, 1, "CQ") == "-");
    const auto users = top_table({view}, TopView::user);
    CHECK(text(users, 0, "PROCS") == "1");
    CHECK(text(users, 0, "QP") == "2");
}

TEST_CASE("top: no line is wider than the screen; names are shortened before columns are left out") {
    auto view = tenant(std::string(60, 't'), {used(Resource::qp, 2, 4)});
    view.processes = {{4711, 0, "train.py", {{"rxe0", {used(Resource::qp, 2, 4)}}}, {}}};
    view.processes[0].cgroup = std::string(200, 'c');
    for (const auto by : {TopView::tenant, TopView::user, TopView::process, TopView::device}) {
        const auto lines = laid_out(top_table({view}, by), {first_sort(by), false, 0}, 80);
        for (const auto& line : lines) CHECK(cells_of(line) <= 80);
        CHECK_THAT(lines[0], Contains("FULL%"));
    }
    CHECK_THAT(laid_out(top_table({view}, TopView::tenant), {5, false, 0}, 80)[1],
               Contains("t...t") && Contains("  50"));
}

TEST_CASE("top: names are shortened in the middle, since jobs differ at their ends") {
    const auto lines = laid_out(top_table({tenant("slurm/" + std::string(60, 'a') + "/job17", {used(Resource::qp, 2, 4)})}, TopView::tenant),
                                {5, false, 0}, 80);
    CHECK_THAT(lines[1], Catch::StartsWith("slurm/aa") && Contains("...") && Contains("/job17 "));
}

TEST_CASE("top: a filter leaves lines with such a word, in whatever case; numbers are not looked at") {
    const auto table = top_table({tenant("physics", {used(Resource::qp, 7)}), tenant("chemistry", {used(Resource::cq, 70)})}, TopView::tenant);
    CHECK(laid_out(table, {5, false, 0, "PHYS"}).size() == 2);
    CHECK(laid_out(table, {5, false, 0, "cq"}).size() == 2);
    CHECK(laid_out(table, {5, false, 0, "rxe"}).size() == 3);
    CHECK(laid_out(table, {5, false, 0, "70"}).size() == 1);
}

TEST_CASE("top: a column in which no line has anything is left out, but not the one that is sorted by") {
    const auto table = top_table({tenant("a", {used(Resource::qp, 7)})}, TopView::tenant);
    CHECK_THAT(laid_out(table, {3, false, 0})[0], !Contains("DEBT") && !Contains("FULL%") && Contains("USAGE"));
    CHECK_THAT(laid_out(table, {5, false, 0})[0], Contains("FULL%"));
}

TEST_CASE("top: a rate has a line where it delayed calls") {
    auto view = tenant("a", {used(Resource::qp, 7)});
    view.rates = {{"rxe0", Resource::commands_per_s, 2000, 2000, unlimited, Reason::configured, {412, 3'250'000'000}},
                  {"rxe0", Resource::registered_per_s, 4096, 4096, unlimited}};
    const auto lines = laid_out(top_table({view}, TopView::tenant), {5, false, 0}, 120);
    REQUIRE(lines.size() == 3);
    CHECK_THAT(lines[0], Catch::EndsWith("DELAYED"));
    CHECK_THAT(lines[2], Contains("commands_per_s") && Contains("2000") && Catch::EndsWith("412 calls, 3.2 s"));
}

TEST_CASE("top: a title that is longer than a line goes on in the next one") {
    CHECK(title_lines("16:29:50  by user", 80) == std::vector<std::string>{"16:29:50  by user", ""});
    const auto lines = title_lines(std::string(60, 'a') + " " + std::string(60, 'b') + " " + std::string(60, 'c'), 80);
    CHECK(lines == std::vector<std::string>{std::string(60, 'a'), std::string(60, 'b')});
}
