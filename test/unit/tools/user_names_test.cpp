#include "tools/rdmaquotad/web/user_names.hpp"

#include <catch2/catch.hpp>

#include "test/waiting.hpp"

using namespace rdmaquota;

TEST_CASE("a user's name is the number until a child has found it") {
    UserNames names;
    CHECK(names.of(0) == "0");  // without waiting
    CHECK(eventually([&] { return names.of(0) == "root"; }));
    CHECK(names.of(3'999'999'999) == "3999999999");
    CHECK(names.of(0) == "root");
}
