#include "tools/rdmaquotad/web/user_names.hpp"

#include <catch2/catch.hpp>

#include "test/waiting.hpp"

using namespace rdmaquota;

TEST_CASE("a child finds a user's name; a user without a name is shown as the number") {
    UserNames names;
    CHECK(eventually([&] { return names.of(0) == "root"; }));
    CHECK(names.of(3'999'999'999) == "3999999999");
    CHECK(names.of(0) == "root");
}
