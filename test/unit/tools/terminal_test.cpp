// Text within the width of a terminal.
#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "tools/common/text/terminal.hpp"

using namespace rdmaquota;

namespace {

Terminal of_width(std::size_t width) {
    Terminal terminal;
    terminal.width = width;
    return terminal;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
}

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    for (const auto& line : lines_of(text)) most = std::max(most, cells_of(line));
    return most;
}

Table processes(const std::string& comm, const std::string& uses) {
    Table table({"PID", "USER", "COMMAND", "USES"}, {Align::right, Align::left, Align::left, Align::left});
    table.add({"4711", "alice", comm, uses});
    return table;
}

}  // namespace

TEST_CASE("a text is broken between words, and behind the first line indented") {
    CHECK(wrapped(of_width(12), "one two three four", 2) == "one two\n  three four");
    CHECK(wrapped(of_width(80), "one two", 2) == "one two");
    CHECK(wrapped(of_width(0), std::string(500, 'x'), 2) == std::string(500, 'x'));
    CHECK(wrapped(of_width(10), std::string(15, 'x'), 2) == std::string(10, 'x') + "\n  " + std::string(5, 'x'));
}

TEST_CASE("cells are code points, and colours have none") {
    CHECK(cells_of("ä█x") == 3);
    CHECK(cells_of("\x1b[31mred\x1b[0m") == 3);
    CHECK(shortened(of_width(0), "abcdefgh", 6) == "abc...");
}

TEST_CASE("a table without a width is as wide as its cells") {
    CHECK(processes("a", "qp 1").text(of_width(0)) == " PID  USER   COMMAND  USES\n4711  alice  a        qp 1\n");
}

TEST_CASE("the last column of a table is broken into lines where it starts") {
    const auto text =
        processes("a.out", "qp 1 of 100, cq 2 of 200, mr 3 of 300, mr_bytes 4 KiB of 8 GiB").text(of_width(50));
    const auto lines = lines_of(text);
    REQUIRE(lines.size() == 4);
    CHECK(widest(text) <= 50);
    const auto begin = lines[0].find("USES");
    CHECK(lines[2].find_first_not_of(' ') == begin);
    CHECK(lines[3].find_first_not_of(' ') == begin);
}

TEST_CASE("long names give way, numbers do not") {
    const auto text = processes(std::string(60, 'c'), std::string(60, 'u')).text(of_width(60));
    CHECK(widest(text) <= 60);
    CHECK_THAT(text, Catch::Contains("4711  alice") && Catch::Contains("ccc..."));
}

TEST_CASE("a column that has nothing takes no room") {
    Table table({"A", "", "C"}, {Align::left, Align::left, Align::left});
    table.add({"a", "", "c"});
    CHECK(table.text(of_width(0)) == "A  C\na  c\n");
}

TEST_CASE("a bar tells how full a limit is, and nothing of 0 of 0") {
    CHECK(bar({}, 6, 12) == "######...... 50%");
    CHECK(bar({}, 1, 1000) == "#........... 0%");
    CHECK(bar({.width = 99}, 6, 12) == "50%");
    CHECK(bar({.width = 100}, 6, 12) == "######...... 50%");
    CHECK(bar({}, 0, 0).empty());
    CHECK_THAT(bar({}, 3, 0), Catch::EndsWith("100%"));
}
