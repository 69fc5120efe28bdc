#include "tools/common/process/node_processes.hpp"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "test/unit/shm/ledger_fixture.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

// Fields 4 to 21 of a stat file.
constexpr const char* eighteen = " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

// A node with a process 1 of its own, and a ledger whose slots are mapped by whom the test says.
struct Containers : LedgerFixture {
    TemporaryDirectory proc;
    Ledger ledger = open();

    Containers() { add(1, "1", 5, ""); }

    std::string maps_of(std::uint32_t slot) const {
        struct stat file {};
        REQUIRE(::stat(lock_path(path, slot).c_str(), &file) == 0);
        return fmt::format("7f00-7f01 ---s {:x} {:02x}:{:02x} {} {}\n", slot * LockFile::hold_stride, major(file.st_dev),
                           minor(file.st_dev), file.st_ino, lock_path(path, slot));
    }
    void add(std::uint32_t pid, const std::string& pids, std::uint64_t start, const std::string& maps) const {
        const auto directory = proc / std::to_string(pid);
        std::filesystem::create_directory(directory);
        std::ofstream(directory + "/stat") << fmt::format("{} (a) b) S{} {} 0\n", pid, eighteen, start);
        std::ofstream(directory + "/status") << "Name:\tprogram\nNSpid:\t" << pids << "\nNSpgid:\t7\t7\n";
        std::ofstream(directory + "/cgroup") << "0::/of/" << pid << "\n";
        if (!maps.empty()) std::ofstream(directory + "/maps") << maps;
    }
    ProcessView named(std::uint32_t claimed, std::uint64_t start, std::uint32_t slot) const {
        TenantView tenant{"blue", Mode::enforce, 100, {}, {}, {}, false};
        ProcessView process{claimed, 0, "program", {}, {}};
        process.slot = slot;
        process.start_time = start;
        tenant.processes.push_back(process);
        NodeProcesses(proc.path()).name(tenant, path);
        return tenant.processes.front();
    }
};

}  // namespace

TEST_CASE_METHOD(Containers, "a process of the node keeps its pid") {
    add(300, "300", 77, "");
    const auto process = named(300, 77, 0);
    CHECK(process.pid == 300);
    CHECK(process.inner_pid == 0);
    CHECK(process.cgroup == "/of/300");
}

TEST_CASE_METHOD(Containers, "a slot that another process wrote to be its own names nobody") {
    add(300, "300", 77, maps_of(2));
    CHECK(named(300, 77, 2).pid == 300);
    CHECK(named(300, 77, 4).pid == 0);
}

TEST_CASE_METHOD(Containers, "a process of a container has the node's pid, by what it has mapped") {
    add(300, "300\t1", 77, maps_of(2));
    add(301, "301\t9\t1", 77, maps_of(65));
    const auto process = named(1, 77, 65);
    CHECK(process.pid == 301);
    CHECK(process.inner_pid == 1);
    CHECK(process.cgroup == "/of/301");
    CHECK(named(1, 77, 2).pid == 300);
}

TEST_CASE_METHOD(Containers, "where mappings may not be read, the one that began then is it, if there is one only") {
    add(300, "300\t1", 77, "");
    add(301, "301\t1", 78, "");
    CHECK(named(1, 78, 4).pid == 301);
    add(302, "302\t1", 78, "");
    CHECK(named(1, 78, 4).pid == 0);
}

TEST_CASE_METHOD(Containers, "a process of the node that could not read /proc keeps its pid, if it has the slot") {
    add(300, "300", 77, maps_of(2));
    CHECK(named(300, 0, 2).pid == 300);
    CHECK(named(300, 0, 2).inner_pid == 0);
    CHECK(named(300, 0, 2).cgroup == "/of/300");
    CHECK(named(300, 0, 3).pid == 0);
}

TEST_CASE_METHOD(Containers, "a container's pid is never shown as the node's") {
    CHECK(named(1, 77, 4).pid == 0);
    CHECK(named(1, 77, 4).cgroup.empty());
    CHECK(pid_text(named(1, 77, 4)) == "-");
}
