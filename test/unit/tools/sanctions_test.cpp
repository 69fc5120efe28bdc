#include <csignal>
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.hpp"
#include "shm/paths.hpp"
#include "shm/policy/policy_writer.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/file_text.hpp"
#include "tools/rdmaquotad/bypass/sanctions.hpp"

using namespace rdmaquota;

namespace {

// A process that sleeps until it is killed.
struct Sleeper {
    pid_t pid = fork_child();
    Sleeper() {
        while (pid == 0) pause();
    }
    ~Sleeper() {
        kill_child(pid);
    }
    Sleeper(const Sleeper&) = delete;

    Suspect suspect(bool has_slot) const {
        const auto number = static_cast<std::uint32_t>(pid);
        return {number, "sleeper", identity_of(number)->start_time, has_slot};
    }
};

const Sanctions::ProcessDevice place{7, "rxe0"};

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
    CHECK(signal_process(charged.pid, 0));
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
    CHECK_THAT(kept[0].why, Catch::StartsWith("it is older than the ledger"));
    CHECK(waitpid(old.pid, nullptr, WNOHANG) == 0);
    CHECK(sanctions.kill(place, difference, {suspect}, suspect.start_time).empty());
}

namespace {

// The cgroup "/" is a folder.
struct Limited {
    const TemporaryDirectory directory;
    Backstop backstop{directory.path(), directory.path()};
    Sanctions sanctions{backstop};
    PolicySegment policy;
    Difference difference;
    const std::vector<Suspect> suspects{{7, "bypasser", 1000, false}};

    static PolicySegment published(const std::string& path) {
        REQUIRE(PolicyWriter::publish(path, Policy{}));
        auto segment = PolicySegment::open(path);
        REQUIRE(segment);
        return std::move(*segment);
    }
    Limited() : policy(published(policy_path(directory.path()))) {
        write("rdma.max", "rxe0 hca_handle=50 hca_object=500");
        write("rdma.current", "rxe0 hca_handle=1 hca_object=5");
        difference.cgroup = "/";
        difference.device = "rxe0";
    }
    void write(const char* name, const char* text) const { std::ofstream(directory / name) << text; }
    bool bounded() const { return backstop.bounds("/", "rxe0"); }
    std::optional<Finding> limit(const Sanctions::ProcessDevice& where, std::uint64_t since = 0) {
        return sanctions.limit(where, difference, suspects, since, policy);
    }
};

const Sanctions::ProcessDevice other{8, "rxe0"};

}  // namespace

TEST_CASE_METHOD(Limited, "a limit is lifted when the last bypass of the cgroup ends") {
    CHECK(limit(place)->kind == Finding::Kind::bypass_limited);
    CHECK_FALSE(limit(place));
    CHECK(limit(other)->kind == Finding::Kind::bypass_limited);
    sanctions.end(place);
    CHECK(bounded());
    sanctions.end(other);
    CHECK_FALSE(bounded());
}

TEST_CASE_METHOD(Limited, "a limit that was the tenant's own and is taken back is set again for the bypass") {
    REQUIRE(backstop.set("/", "rxe0", {40, 400}));
    CHECK(limit(place)->kind == Finding::Kind::bypass_limited);
    backstop.put_back("/", "rxe0");
    CHECK(limit(place)->kind == Finding::Kind::bypass_limited);
    CHECK(bounded());
    sanctions.end(place);
    CHECK_FALSE(bounded());
}

TEST_CASE_METHOD(Limited, "what cannot be limited is told once, and tried again") {
    difference.cgroup = "/none";
    CHECK(limit(place)->kind == Finding::Kind::bypass_kept);
    CHECK_FALSE(limit(place));
    difference.cgroup = "/";
    CHECK(limit(place)->kind == Finding::Kind::bypass_limited);
}

TEST_CASE_METHOD(Limited, "nobody is limited who may be charged elsewhere") {
    CHECK(limit(place, 1000)->kind == Finding::Kind::bypass_kept);
    CHECK_FALSE(bounded());
    CHECK(limit(other, 999)->kind == Finding::Kind::bypass_limited);
}
