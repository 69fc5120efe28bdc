// Reading the mappings of processes that do not let themselves be read.
#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "test/unit/temporary_directory.hpp"
#include "test/waiting.hpp"
#include "tools/common/process/children.hpp"
#include "tools/common/process/maps_reader.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

// A directory with files of processes, as /proc. A FIFO blocks the reader until it is killed, as a locked address space does.
struct FakeProc {
    TemporaryDirectory directory;

    std::string add(int pid, uid_t user, const std::string& start = "100") const {
        const auto path = directory / std::to_string(pid);
        ::mkdir(path.c_str(), 0755);
        std::ofstream(path + "/stat") << pid << " (a b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " << start << " 0 0";
        std::ofstream(path + "/status") << "Name:\ta\nUid:\t" << user << "\t0\t0\t0\n";
        return path;
    }
    std::string add_silent(int pid, uid_t user, const std::string& start = "100") const {
        auto path = add(pid, user, start);
        ::unlink((path + "/maps").c_str());
        REQUIRE(::mkfifo((path + "/maps").c_str(), 0600) == 0);
        return path;
    }
    std::string add_readable(int pid, uid_t user, const std::string& maps) const {
        auto path = add(pid, user);
        std::ofstream(path + "/maps") << maps;
        return path;
    }
};

}  // namespace

TEST_CASE("mappings are read whole, and a process that may not be read has none") {
    MapsReader reader;
    const FakeProc proc;
    const std::string text(300'000, 'x');
    const auto maps = reader.read(proc.add_readable(1, 1000, text));
    REQUIRE(maps);
    CHECK(maps->text == text);
    const auto none = reader.read(proc.add(2, 1000));
    REQUIRE(none);
    CHECK(none->text.empty());
    const auto own = reader.read(fmt::format("/proc/{}", ::getpid()));
    REQUIRE(own);
    CHECK(own->text.find("unit_tests") != std::string::npos);
}

TEST_CASE("a process that does not let itself be read is asked once, and its user not for a while") {
    MapsReader reader;
    const FakeProc proc;
    const auto silent = proc.add_silent(1, 1000);
    CHECK_FALSE(reader.read(silent));
    CHECK_FALSE(reader.read(silent));
    CHECK_FALSE(reader.read(proc.add_silent(2, 1000)));
    CHECK_FALSE(reader.read(proc.add_readable(3, 1000, "text")));
    CHECK(reader.silences() == 1);
    const auto other = reader.read(proc.add_readable(4, 1001, "text"));
    REQUIRE(other);
    CHECK(other->text == "text");
    CHECK(eventually([] { return unended_children() == 0; }));
}

TEST_CASE("many silent processes of many users take a twentieth of the time") {
    MapsReader reader;
    const FakeProc proc;
    for (int i = 0; i < 50; ++i) CHECK_FALSE(reader.read(proc.add_silent(i + 1, 1000 + static_cast<uid_t>(i))));
    CHECK(reader.silences() >= 1);
    CHECK(reader.silences() <= 4);
    CHECK(eventually([] { return unended_children() == 0; }));
}

// Each answers, but late. Whoever has written to a FIFO has met its reader, so it can be told that they were read.
TEST_CASE("many slow processes do not hold a reader for longer than one that is silent") {
    MapsReader reader;
    const FakeProc proc;
    std::vector<std::string> slow;
    for (int i = 0; i < 50; ++i) slow.push_back(proc.add_silent(i + 1, 1000 + static_cast<uid_t>(i)));
    std::atomic<bool> over = false;
    std::thread answers([&] {
        for (std::size_t i = 0; i < slow.size() && !over;) {
            const int fifo = ::open((slow[i] + "/maps").c_str(), O_WRONLY | O_NONBLOCK);
            std::this_thread::sleep_for(200ms);
            if (fifo < 0) continue;
            ::close(fifo);
            ++i;
        }
    });
    unsigned read = 0;
    for (const auto& process : slow) read += reader.read(process) ? 1U : 0U;
    over = true;
    answers.join();
    CHECK(read >= 2);
    CHECK(read < 25);
}
