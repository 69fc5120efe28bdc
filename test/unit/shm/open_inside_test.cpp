// Directories below another process's root, who may have put links there.
#include <filesystem>

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include "shm/open_inside.hpp"
#include "shm/same_file.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
namespace fs = std::filesystem;

namespace {

bool opens(const std::string& root, const std::string& path, const std::string& as) {
    const int fd = open_directory_inside(root, path);
    if (fd < 0) return false;
    struct stat opened {
    }, wanted{};
    const bool same = ::fstat(fd, &opened) == 0 && ::stat(as.c_str(), &wanted) == 0 && same_file(opened, wanted);
    ::close(fd);
    return same;
}

}  // namespace

TEST_CASE("a directory below a root is found by its path, and by no link") {
    const TemporaryDirectory root;
    fs::create_directories(root / "run/rdmaquota");
    fs::create_directories(root / "other/rdmaquota");
    CHECK(opens(root.path(), "/run/rdmaquota", root / "run/rdmaquota"));
    CHECK(opens(root.path(), "run//rdmaquota/", root / "run/rdmaquota"));
    CHECK(opens("/proc/self/root", root / "run", root / "run"));
    CHECK(open_directory_inside(root.path(), "/run/nowhere") < 0);
    CHECK(open_directory_inside("/nowhere", "/run") < 0);

    fs::create_directory_symlink("/tmp", root / "run/linked");
    fs::create_directory_symlink("other", root / "beside");
    for (const auto* path : {"/run/linked", "/beside", "/beside/rdmaquota", "/run/../other", "..", "../tmp", "/run/.."}) {
        INFO(path);
        CHECK(open_directory_inside(root.path(), path) < 0);
    }
}
