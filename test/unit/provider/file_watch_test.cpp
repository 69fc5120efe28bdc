#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provider/host/file_watch.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

struct WatchedFile {
    TemporaryDirectory directory;
    std::string path = directory.path() + "/device";
    int fd = (std::ofstream(path), open_it());
    FileWatch watch;

    int open_it() const { return open(path.c_str(), O_RDWR | O_CLOEXEC); }
    bool begin() { return watch.begin(fd, path.c_str()); }
};

int lock_all(int fd, int command, short type) {
    struct flock whole {};
    whole.l_type = type;
    return fcntl(fd, command, &whole);
}

}  // namespace

TEST_CASE("a file is open as long as its last descriptor") {
    WatchedFile file;
    CHECK_FALSE(file.watch.is_open());  // nothing has begun
    REQUIRE(file.begin());
    const int copy = dup(file.fd);
    close(file.fd);
    CHECK(file.watch.is_open());
    close(copy);
    CHECK_FALSE(file.watch.is_open());
}

TEST_CASE("somebody's lock of the whole file is not taken for ours") {
    WatchedFile file;
    REQUIRE(file.begin());
    close(file.fd);
    const int other = file.open_it();
    REQUIRE(lock_all(other, F_OFD_SETLK, F_WRLCK) == 0);
    CHECK_FALSE(file.watch.is_open());
    REQUIRE(lock_all(other, F_OFD_SETLK, F_RDLCK) == 0);
    CHECK_FALSE(file.watch.is_open());
    close(other);
}

TEST_CASE("of a file that somebody else keeps locked, what this process has of it is told") {
    WatchedFile file;
    const int other = file.open_it();
    REQUIRE(lock_all(other, F_OFD_SETLK, F_WRLCK) == 0);
    REQUIRE(ftruncate(other, 4096) == 0);
    CHECK_FALSE(file.watch.is_blind());
    CHECK_FALSE(file.begin());
    CHECK(file.watch.is_blind());
    void* queue = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.fd, 0);
    REQUIRE(queue != MAP_FAILED);
    static int known;
    known = other;
    const auto is_known = [](int fd) { return fd == known; };
    CHECK(file.watch.has_stray_descriptor(is_known));
    close(file.fd);
    CHECK_FALSE(file.watch.has_stray_descriptor(is_known));
    CHECK(file.watch.is_mapped());
    munmap(queue, 4096);
    CHECK_FALSE(file.watch.is_mapped());
    close(other);
}

TEST_CASE("the file of a device that was unplugged is taken to be released") {
    WatchedFile file;
    REQUIRE(unlink(file.path.c_str()) == 0);
    CHECK(file.begin());
    CHECK_FALSE(file.watch.is_open());
    close(file.fd);
}

// Where the machine is busy "soon" may be too late, so it is tried until it was not.
TEST_CASE("a lock that somebody gives up soon is waited for") {
    WatchedFile file;
    bool begun = false;
    for (int tries = 0; tries < 1000 && !begun; ++tries) {
        const int other = file.open_it();
        REQUIRE(lock_all(other, F_OFD_SETLK, F_WRLCK) == 0);
        std::thread releaser([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            close(other);
        });
        begun = file.begin();
        releaser.join();
    }
    CHECK(begun);
    CHECK(file.watch.is_open());
    close(file.fd);
    CHECK_FALSE(file.watch.is_open());
}

TEST_CASE("a lock that the program itself has on the file does not prevent the watch") {
    WatchedFile file;
    REQUIRE(lock_all(file.fd, F_OFD_SETLK, F_WRLCK) == 0);
    REQUIRE(file.begin());
    const int copy = dup(file.fd);
    close(file.fd);
    CHECK(file.watch.is_open());
    close(copy);
    CHECK_FALSE(file.watch.is_open());
}
