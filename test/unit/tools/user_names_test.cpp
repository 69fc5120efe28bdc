#include "tools/rdmaquotad/web/user_names.hpp"

#include <catch2/catch.hpp>

#include "test/waiting.hpp"

using namespace rdmaquota;

TEST_CASE("a user's name is found by a child, and is the number where there is no such user") {
    UserNames names;
    CHECK(eventually([&] { return names.of(0) == "root"; }));
    CHECK(names.of(3'999'999'999) == "3999999999");
    CHECK(names.of(0) == "root");
}
