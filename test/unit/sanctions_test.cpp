#include <csignal>
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.hpp"
#include "shm/paths.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/rdmaquota/file_text.hpp"
#include "tools/rdmaquotad/sanctions.hpp"

using namespace rdmaquota;

namespace {

// A process that sleeps until it is killed.
struct Sleeper {
    pid_t pid = fork();
    Sleeper() {
        while (pid == 0) pause();
    }
    ~Sleeper() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    Sleeper(const Sleeper&) = delete;

    Suspect suspect(bool has_slot) const {
        const auto number = static_cast<std::uint32_t>(pid);
        return {number, "sleeper", identity_of(number)->start_time, has_slot};
    }
};

const Sanctions::Place place{7, "rxe0"};

}  // namespace

TEST_CASE("of who goes around the quota together, those without a slot are killed, each once") {
    const TemporaryDirectory directory;
    Backstop backstop(directory.path(), directory.path());
    Sanctions sanctions(backstop);
    const Sleeper parent, child, charged;
    const std::vector all{parent.suspect(false), child.suspect(false), charged.suspect(true)};
    Difference difference;
    difference.pid = static_cast<std::uint32_t>(parent.pid);
    const auto killed = sanctions.kill(place, difference, all, 0);
    REQUIRE(killed.size() == 2);
    CHECK(killed[0].kind == Finding::Kind::bypass_killed);
    CHECK(killed[1].difference.pid == static_cast<std::uint32_t>(child.pid));
    CHECK(kill(charged.pid, 0) == 0);
    CHECK(sanctions.kill(place, difference, all, 0).empty());
}

TEST_CASE("who may be charged in the ledger that there was before is spared") {
    const TemporaryDirectory directory;
    Backstop backstop(directory.path(), directory.path());
    Sanctions sanctions(backstop);
    const Sleeper old;
    const auto suspect = old.suspect(false);
    Difference difference;
    difference.pid = suspect.pid;
    const auto kept = sanctions.kill(place, difference, {suspect}, suspect.start_time);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].kind == Finding::Kind::bypass_kept);
    CHECK(kept[0].why == "it is older than the ledger, and may be charged in another");
    CHECK(waitpid(old.pid, nullptr, WNOHANG) == 0);
    CHECK(sanctions.kill(place, difference, {suspect}, suspect.start_time).empty());
}
