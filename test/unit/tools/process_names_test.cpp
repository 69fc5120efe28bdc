#include "tools/rdmaquotad/serve/process_names.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/core.h>
#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"
#include "test/waiting.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

struct Proc : TemporaryDirectory {
    ProcessNames names{path()};
    ProcessNames::OfLedger known;
    ProcessNames::Clock::time_point now{1h};

    // `pids`: from the outermost pid namespace inwards.
    void add(std::uint32_t pid, const std::string& pids, std::uint64_t start) const {
        const auto directory = *this / std::to_string(pid);
        std::filesystem::create_directories(directory);
        std::ofstream(directory + "/stat")
            << fmt::format("{} (p) S 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 {} 0\n", pid, start);
        std::ofstream(directory + "/status") << "Name:\tp\nNSpid:\t" << pids << "\n";
        std::ofstream(directory + "/cgroup") << "0::/of/" << pid << "\n";
    }
    ProcessView named(std::uint32_t pid, std::uint64_t start) {
        TenantView tenant{"lab", Mode::enforce, 100, {}, {}, {}};
        tenant.processes.push_back({pid, 0, "p", {}, {}, 3, start});
        names.name(tenant, "/nonexistent", known, now);
        return tenant.processes.front();
    }
};

}  // namespace

TEST_CASE_METHOD(Proc, "the sidecar gives a container's process the node's pid") {
    add(1, "1", 5);
    add(300, "300\t1", 77);
    CHECK(named(1, 77).pid == 300);
    CHECK(named(1, 77).inner_pid == 1);
    CHECK(named(1, 77).cgroup == "/of/300");
}

TEST_CASE_METHOD(Proc, "what a process is called is asked for once, and again after a while") {
    add(300, "300", 77);
    CHECK(named(300, 77).pid == 300);
    std::filesystem::remove_all(*this / "300");
    now += ProcessNames::known_for - 1s;
    CHECK(named(300, 77).pid == 300);
    CHECK(named(300, 78).pid == 0);  // another process
    CHECK(known.size() == 1);
    now += ProcessNames::known_for;
    CHECK(named(300, 77).pid == 0);
    add(300, "300", 77);
    CHECK(named(300, 77).pid == 0);
    now += ProcessNames::unknown_for;
    CHECK(named(300, 77).pid == 300);
}

TEST_CASE_METHOD(Proc, "a ledger full of strange pids takes bounded time") {
    for (std::uint32_t pid = 2; pid < 400; ++pid) add(pid, fmt::format("{}\t1", pid), pid);
    TenantView tenant{"lab", Mode::enforce, 100, {}, {}, {}};
    for (std::uint32_t i = 0; i < 4000; ++i) tenant.processes.push_back({1, 0, "p", {}, {}, i, 1000000 + i});
    const auto begin = cpu_seconds();
    names.name(tenant, "/nonexistent", known, now);
    CHECK(cpu_seconds() - begin < 1);
    CHECK(tenant.processes.size() == 4000);
    CHECK(tenant.processes.back().pid == 0);
}
