#include <catch2/catch.hpp>

#include "shm/number.hpp"

using namespace rdmaquota;

TEST_CASE("numbers are read from the kernel's texts") {
    CHECK(number_in(" \t12 34") == 12);
    CHECK(number_in("18446744073709551615") == UINT64_MAX);
    CHECK(!number_in("18446744073709551616"));
    CHECK(!number_in("x1"));
    CHECK(!number_in("-1"));
    CHECK(!number_in("  "));
    CHECK(number_after("inotify wd:1 ino:9e7e sdev:800013 mask:8", " sdev:", 16) == 0x800013);
    CHECK(!number_after("inotify wd:1", " ino:", 16));
}
