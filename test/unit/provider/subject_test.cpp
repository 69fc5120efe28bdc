#include "provider/host/subject.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using rdmaquota::provider::OwnSubject;

namespace {

// A policy that asks for what the matches say, and a directory as /proc/self.
struct Host {
    TemporaryDirectory directory;

    NodePolicy policy(const Match& match) const {
        Policy policy;
        policy.tenant("physics").matches = {match};
        const auto path = directory / "policy";
        const auto lock = PolicyLock::take(path);
        REQUIRE(lock);
        REQUIRE(publish_node_policy(*lock, path, policy, {}));
        auto read = NodePolicy::read(path);
        REQUIRE(read);
        return std::move(*read);
    }
    NodePolicy asking_for_ids() const { return policy({"1000", {}, {}, {}, {}}); }
    NodePolicy asking_for_cgroup() const { return policy({{}, {}, "/slurm", {}, {}}); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(directory / name) << text; }
    void map_ids(const std::string& map) const {
        write("uid_map", map);
        write("gid_map", map);
    }
};

long open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
}

}  // namespace

TEST_CASE("a process's own subject has its ids") {
    const Host host;
    const OwnSubject own(host.asking_for_ids());
    const auto subject = own.view();
    CHECK(subject.user == geteuid());
    CHECK(subject.group == getegid());
    CHECK(static_cast<int>(subject.groups.size()) == getgroups(0, nullptr));
    CHECK(subject.cgroup.empty());
}

TEST_CASE("a process's own subject has its cgroup") {
    const Host host;
    const OwnSubject own(host.asking_for_cgroup());
    const auto subject = own.view();
    CHECK_FALSE(subject.user);
    CHECK_FALSE(subject.group);
    std::ifstream file("/proc/self/cgroup");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    CHECK((text.find(std::string(subject.cgroup) + "\n") != text.npos || subject.cgroup.empty()));
}

TEST_CASE("a process in a user namespace has the node's ids") {
    const Host host;
    const auto policy = host.asking_for_ids();
    host.map_ids("0 100000 65535\n");
    const OwnSubject own(policy, host.directory.path());
    CHECK(own.view().user == 100000 + geteuid());
    CHECK(own.view().group == 100000 + getegid());
    for (const auto group : own.view().groups) CHECK(group >= 100000);
}

TEST_CASE("an id that is not mapped is not known") {
    const Host host;
    const auto policy = host.asking_for_ids();
    host.map_ids("70000 0 1\n");
    const OwnSubject own(policy, host.directory.path());
    CHECK_FALSE(own.view().user);
    CHECK_FALSE(own.view().group);
    CHECK(own.view().groups.empty());
}

TEST_CASE("without /proc the ids are taken as they are, and the cgroup is not known") {
    const Host host;
    CHECK(OwnSubject(host.asking_for_ids(), "/nonexistent").view().user == geteuid());
    CHECK(OwnSubject(host.asking_for_cgroup(), "/nonexistent").view().cgroup.empty());
    CHECK(OwnSubject(host.asking_for_cgroup(), "/").view().cgroup.empty());
}

TEST_CASE("a long text is read whole, an endless one in part") {
    const Host host;
    const auto policy = host.asking_for_cgroup();
    std::string hierarchies;
    for (int i = 14; i > 1; --i)
        hierarchies += std::to_string(i) + ":x" + std::to_string(i) + ":/" + std::string(4000, 'x') + "\n";
    host.write("cgroup", hierarchies + "0::/slurm/job_7\n");
    CHECK(OwnSubject(policy, host.directory.path()).view().cgroup == "/slurm/job_7");
    host.write("cgroup", std::string(1 << 20, 'x') + "\n0::/slurm/job_7\n");
    CHECK(OwnSubject(policy, host.directory.path()).view().cgroup.empty());
}

TEST_CASE("finding out who one is leaves errno and descriptors as they were") {
    const Host host;
    const auto policy = host.policy({"1000", {}, "/slurm", {}, {}});
    const auto before = open_descriptors();
    errno = ENOTTY;
    { const OwnSubject own(policy, "/nonexistent"); }
    { const OwnSubject own(policy); }
    CHECK(errno == ENOTTY);
    CHECK(open_descriptors() == before);
}

TEST_CASE("in the initial user namespace the maps of ids are not asked") {
    const Host host;
    struct stat status {};
    REQUIRE(stat("/proc/self/ns/user", &status) == 0);
    const bool initial = status.st_ino == 0xEFFFFFFD;
    std::filesystem::create_directory(host.directory / "ns");
    std::filesystem::create_symlink("/proc/self/ns/user", host.directory / "ns/user");
    host.map_ids("0 100000 65536\n");
    const auto policy = host.asking_for_ids();
    const OwnSubject own(policy, host.directory.path());
    CHECK(own.view().user == (initial ? geteuid() : geteuid() + 100000));
}
