#include "tools/common/tenants/subject.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

TEST_CASE("the subject of a process is in its files in /proc") {
    const TemporaryDirectory proc;
    std::filesystem::create_directory(proc / "42");
    std::ofstream(proc / "42/status") << "Name:\tprogram\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \n";
    std::ofstream(proc / "42/cgroup") << "0::/slurm/job_7\n";
    const auto process = ProcessSubject::of(42, proc.path());
    REQUIRE(process);
    const auto subject = process->view();
    CHECK(subject.user == uid_t{2});
    CHECK(subject.group == gid_t{6});
    REQUIRE(subject.groups.size() == 2);
    CHECK(subject.groups[1] == 10);
    CHECK(subject.cgroup == "/slurm/job_7");
}

TEST_CASE("the subject of a real process has its ids") {
    const auto process = ProcessSubject::of(getpid());
    REQUIRE(process);
    CHECK(process->view().user == geteuid());
    CHECK(process->view().group == getegid());
    CHECK(static_cast<int>(process->view().groups.size()) == getgroups(0, nullptr));
}

TEST_CASE("a cgroup that may not be read is not known") {
    const TemporaryDirectory proc;
    std::filesystem::create_directory(proc / "42");
    std::ofstream(proc / "42/status") << "Uid:\t1\t2\t3\t4\n";
    const auto process = ProcessSubject::of(42, proc.path());
    REQUIRE(process);
    CHECK(process->view().cgroup.empty());
    CHECK_FALSE(process->view().group);
}

TEST_CASE("a process that does not exist has no subject") {
    const TemporaryDirectory proc;
    const auto process = ProcessSubject::of(42, proc.path());
    REQUIRE_FALSE(process);
    CHECK(process.error() == "there is no process 42, or it may not be seen");
    CHECK_FALSE(ProcessSubject::of(0));
    CHECK_FALSE(ProcessSubject::of(-1));
}
