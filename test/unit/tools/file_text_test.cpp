#include "tools/common/file_text.hpp"

#include <fstream>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

TEST_CASE("what can be read of a file is its text") {
    const TemporaryDirectory directory;
    const auto path = directory.path() + "/file";
    std::ofstream(path) << "one\ntwo\n";
    CHECK(file_text(path) == "one\ntwo\n");
    CHECK(file_text(path + ".none").empty());
}

// A directory opens and fails when it is read, as a file of /proc does whose process ends in between.
TEST_CASE("a file that fails when it is read is empty") { CHECK(file_text("/").empty()); }
