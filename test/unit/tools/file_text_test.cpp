#include "tools/common/text/file_text.hpp"

#include <csignal>
#include <fstream>
#include <stdexcept>

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include "test/processes.hpp"
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

// The first write is a short one, which sets no errno; what follows it fails.
TEST_CASE("a file for which there is no room says why it was not replaced") {
    const TemporaryDirectory directory;
    const auto path = directory.path() + "/file";
    ChildProcess child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4096, 4096};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto replaced = replace_file(path, std::string(8192, 'x'));
        if (replaced || replaced.error().find("File too large") == std::string::npos) throw std::runtime_error("another error");
    });
    CHECK(child.wait() == 0);
    CHECK(file_text(path).empty());
}
