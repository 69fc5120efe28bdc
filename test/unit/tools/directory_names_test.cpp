#include "tools/common/text/directory_names.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <catch2/catch.hpp>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include "test/unit/temporary_directory.hpp"
#include "tools/rdmaquota/doctor/slurm.hpp"

using namespace rdmaquota;

namespace {

int reads_left = -1;  // how many reads of a directory succeed; negative: all

struct FailingReads {
    explicit FailingReads(int after) { reads_left = after; }
    ~FailingReads() { reads_left = -1; }
};

}  // namespace

// For the C++ library too: a directory of /proc or of a network file system can fail in the middle.
extern "C" __attribute__((visibility("default"))) dirent* readdir(DIR* directory) {
    static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
    if (reads_left == 0) {
        errno = EIO;
        return nullptr;
    }
    if (reads_left > 0) --reads_left;
    return real(directory);
}

TEST_CASE("the names in a directory are those of its entries") {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() + "/file") << "text";
    ::mkdir((directory.path() + "/.hidden").c_str(), 0755);
    auto names = directory_names(directory.path());
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{".hidden", "file"});
    CHECK(directory_names(directory.path() + "/none").empty());
    CHECK(directory_names(directory.path() + "/file").empty());
}

TEST_CASE("a directory that fails while it is read has the names that were read before") {
    const TemporaryDirectory directory;
    for (const char* name : {"/a", "/b", "/c", "/d", "/e"}) std::ofstream(directory.path() + name) << "text";
    const FailingReads failing(4);
    int error = 0;
    CHECK(directory_names(directory.path(), error).size() >= 2);
    CHECK(error == EIO);
}

TEST_CASE("a directory of jobs that fails while it is read ends nobody") {
    const TemporaryDirectory directory;
    for (const char* name : {"/a", "/b", "/c", "/d", "/e"}) ::mkdir((directory.path() + name).c_str(), 0755);
    const FailingReads failing(4);
    CHECK_NOTHROW(job_cgroups(directory.path()));
}
