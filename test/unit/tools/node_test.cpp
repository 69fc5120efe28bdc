#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/rdmaquotad/node/instances.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_usage.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

constexpr auto device = "rxe0";
const std::set<std::string> devices{device};

double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// A node's directory. Time goes on by what a test adds only.
struct NodeFixture {
    TemporaryDirectory directory;
    Policy policy;
    LookSchedule::Clock::time_point time{LookSchedule::Clock::now()};
    Node node{directory.path(), [this] { return time; }};
    NameLookup names{[](const std::string&) { return std::optional<uid_t>(); },
                     [](const std::string&) { return std::optional<gid_t>(); }};

    void put(const std::string& key) {
        TenantLimits limits;
        limits.tenant = key;
        REQUIRE(put_limits(directory.path(), key, limits));
        REQUIRE(put_ledger({key, here_path(directory.path(), key)}, LedgerAccess::everyone()));
    }
    void publish() {
        const auto lock = PolicyLock::take(node_policy_path(directory.path()));
        REQUIRE(lock);
        REQUIRE(publish_node_policy(*lock, node_policy_path(directory.path()), policy, names));
    }
    // One for each user, whichever.
    void put_template() {
        put("default");
        TenantPolicy users;
        users.name = "user/{user}";
        users.matches.push_back({.user = {}, .group = {}, .cgroup = "/**", .unit = {}, .members = {"*"}});
        policy.tenants.push_back(users);
        publish();
        node.refresh();
    }
    std::string ledger_of(const std::string& key) { return ledger_path(here_path(directory.path(), key)); }
    Ledger open(const std::string& key) {
        auto ledger = Ledger::open(ledger_of(key));
        REQUIRE(ledger);
        return std::move(*ledger);
    }
    LedgerWatch& watched(const std::string& key) {
        REQUIRE(node.find(key) != nullptr);
        return node.find(key)->ledger();
    }
    // A second of the daemon.
    void tick() {
        time += 1s;
        node.refresh();
        node.check(100ms);
        node.look(devices, 150ms);
    }
    void come_to_rest() {
        for (int i = 0; i < 10; ++i) tick();
    }
    static void charge(Ledger& ledger, const Owner& owner, std::uint64_t qps) {
        const Limits none[Amounts::capacity];
        REQUIRE_FALSE(ledger.charge(owner, *ledger.device_index(device), Amounts{}.add(Resource::qp, qps), none));
    }
};

Owner claim(Ledger& ledger) {
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    return std::move(*owner);
}

}  // namespace

TEST_CASE_METHOD(NodeFixture, "tenants that come and go are followed, and a policy that is replaced") {
    CHECK_FALSE(node.refresh());
    CHECK_THAT(node.missing(), Catch::Contains("rdmaquota reload"));
    put("default");
    publish();
    CHECK(node.refresh());
    CHECK(node.usable());
    CHECK(node.with_ledger().size() == 1);
    put("physics/atlas");
    CHECK_FALSE(node.refresh());
    REQUIRE(node.find("physics/atlas") != nullptr);
    publish();
    CHECK(node.refresh());
    remove_tenant_files(directory.path(), node.find("physics/atlas")->place());
    node.refresh();
    CHECK(node.find("physics/atlas") == nullptr);
}

TEST_CASE_METHOD(NodeFixture, "a directory of one tenant's own is a node with that tenant") {
    put("default");
    Node own(here_path(directory.path()));
    CHECK(own.refresh());
    CHECK(own.usable());
    CHECK(own.policy() == nullptr);
    REQUIRE(own.with_ledger().size() == 1);
    CHECK(own.with_ledger()[0]->key().empty());
    CHECK(own.with_ledger()[0]->name() == "default");
    CHECK(own.tenant_of(static_cast<std::uint32_t>(getpid())).empty());
}

TEST_CASE_METHOD(NodeFixture, "a ledger is read while it is in use, and checked when it is at rest") {
    put("default");
    put("other");
    publish();
    come_to_rest();
    CHECK(watched("default").at_rest());
    auto ledger = open("default");
    {
        auto owner = claim(ledger);
        charge(ledger, owner, 5);
        tick();
        CHECK_FALSE(watched("default").at_rest());
        CHECK(watched("default").figures().usage(device, Resource::qp) == 5);
        CHECK(watched("default").slots().size() == 1);
        CHECK(watched("other").at_rest());
    }
    tick();  // reaps it
    CHECK(watched("default").figures().usage(device, Resource::qp) == 0);
    come_to_rest();
    CHECK(watched("default").at_rest());
}

TEST_CASE_METHOD(NodeFixture, "a damaged ledger is replaced with its members, and no other tenant's") {
    put("default");
    put("other");
    LedgerAccess of_group;
    of_group.mode = 0660;
    REQUIRE(set_rights(data_path(ledger_of("other")), rights_for(of_group)));
    publish();
    come_to_rest();
    const auto number = watched("default").number();
    REQUIRE(truncate(data_path(ledger_of("other")).c_str(), 5000) == 0);
    tick();
    CHECK_FALSE(watched("other").take_aside().empty());
    CHECK(watched("other").usable());
    CHECK(rights_of(data_path(ledger_of("other")))->mode == 0660);
    CHECK(watched("default").number() == number);
    REQUIRE(truncate(data_path(ledger_of("other")).c_str(), 5000) == 0);
    tick();
    CHECK_FALSE(watched("other").usable());
    CHECK_THAT(watched("other").missing(), Catch::Contains("rdmaquota reload"));
    CHECK(watched("default").usable());
}

TEST_CASE_METHOD(NodeFixture, "a ledger that could never be used is left alone") {
    put("default");
    publish();
    REQUIRE(truncate(data_path(ledger_of("default")).c_str(), 5000) == 0);
    come_to_rest();
    CHECK_FALSE(watched("default").usable());
    CHECK(watched("default").take_aside().empty());
}

TEST_CASE_METHOD(NodeFixture, "a tenant's use is what its own ledger says, or the kernel's figure where it is the only tenant") {
    put("default");
    publish();
    node.refresh();
    auto first = open("default");
    const auto owner = claim(first);
    charge(first, owner, 5);
    tick();
    KernelUse use;
    use.device = device;
    use.live[index(Resource::qp)] = 20;
    const auto none = [](Resource) { return false; };
    CHECK(NodeUsage(node, {use}, none).of_tenant(*node.find("default"), device, Resource::qp) == 20);

    put("other");
    publish();
    node.refresh();
    tick();
    const NodeUsage usage(node, {use}, none);
    CHECK(usage.of_node(device, Resource::qp) == 20);
    CHECK(usage.of_tenant(*node.find("default"), device, Resource::qp) == 5);  // what "other" has hidden is not its use
    CHECK(usage.of_tenant(*node.find("other"), device, Resource::qp) == 0);
}

TEST_CASE_METHOD(NodeFixture, "a forged ledger changes no limits of other tenants") {
    TenantLimits limits;
    limits.tenant = "liar";
    REQUIRE(put_limits(directory.path(), "liar", limits));
    REQUIRE(put_ledger({"liar", here_path(directory.path(), "liar")}, LedgerAccess::everyone()));
    put("default");
    publish();
    node.refresh();
    auto ledger = open("liar");
    const auto owner = claim(ledger);
    charge(ledger, owner, 900);
    tick();
    KernelUse use;
    use.device = device;
    use.live[index(Resource::qp)] = 3;
    const auto& liar = *node.find("liar");
    const auto& honest = *node.find("default");
    const auto all = [](Resource) { return true; };
    const auto none = [](Resource) { return false; };
    CHECK(NodeUsage(node, {use}, all).of_node(device, Resource::qp) == 3);
    CHECK(NodeUsage(node, {use}, all).of_node_for(liar, device, Resource::qp) == 3);
    CHECK(NodeUsage(node, {use}, none).of_node_for(honest, device, Resource::qp) == 3);
    CHECK(NodeUsage(node, {use}, none).of_node_for(liar, device, Resource::qp) == 900);
    use.partial = true;
    CHECK(NodeUsage(node, {use}, all).of_node_for(honest, device, Resource::qp) == 3);
    CHECK(NodeUsage(node, {use}, all).of_node(device, Resource::qp) == 900);
}

TEST_CASE_METHOD(NodeFixture, "members see their tenant") {
    put("default");
    put("members");
    LedgerAccess access;
    access.users = {1000};
    access.groups = {50};
    REQUIRE(set_rights(data_path(ledger_of("members")), rights_for(access)));
    publish();
    node.refresh();
    const std::vector<gid_t> group{50}, none;
    auto& tenant = *node.find("members");
    CHECK(tenant.admits(1000, none));
    CHECK(tenant.admits(1001, group));
    CHECK_FALSE(tenant.admits(1001, none));
    CHECK(node.find("default")->admits(1001, none));
}

TEST_CASE_METHOD(NodeFixture, "a user who asks gets the tenant of a template that the matches say") {
    put_template();
    Instances instances(node);
    const auto key = fmt::format("user/#{}", geteuid());
    const auto made = instances.make_for(getpid(), geteuid());
    if (!made) FAIL(made.error());
    CHECK(made->tenant == key);
    CHECK(made->made);
    REQUIRE(node.find(key) != nullptr);
    CHECK(node.find(key)->has_ledger());
    CHECK_FALSE(instances.make_for(getpid(), geteuid())->made);
    CHECK_FALSE(instances.make_for(getpid(), geteuid() + 1));
    policy.tenants.pop_back();
    publish();
    come_to_rest();
    CHECK(instances.remove_unused());
    CHECK(node.find(key) == nullptr);
}

// A stand-in for a directory service that does not answer.
TEST_CASE_METHOD(NodeFixture, "a tenant whose making takes long holds nobody up for long") {
    put_template();
    Instances instances(node, [](auto&&...) -> Result<void> { return ::pause(), Result<void>(); });
    const auto first = instances.make_for(getpid(), geteuid());
    CHECK_THAT(first.error(), Catch::Contains("it is still being made"));
    const auto second = instances.make_for(getpid(), geteuid());
    CHECK_THAT(second.error(), Catch::Contains("another tenant is still being made"));
}

TEST_CASE_METHOD(NodeFixture, "what was in the way of a tenant is said") {
    put_template();
    Instances instances(node, [](auto&&...) -> Result<void> { return Error{"no room"}; });
    CHECK(instances.make_for(getpid(), geteuid()).error() == "no room");
}

TEST_CASE_METHOD(NodeFixture, "a user gets few tenants in cgroups of its own, more in those of root, and root any number") {
    if (geteuid() != 0) return;
    const TemporaryDirectory proc, cgroups;
    const auto pod = [&](int n, uid_t owner, uid_t user) {
        const auto group = fmt::format("/pod-{}-{}-{}", owner, user, n);
        REQUIRE(::mkdir((cgroups.path() + group).c_str(), 0755) == 0);
        REQUIRE(::chown((cgroups.path() + group).c_str(), owner, owner) == 0);
        ::mkdir((proc / "1").c_str(), 0755);
        std::ofstream(proc / "1/status") << fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{0}\t{0}\t{0}\t{0}\nGroups:\t\n", user);
        std::ofstream(proc / "1/cgroup") << "0::" << group << "\n";
        return ProcessSubject::of(1, proc.path());
    };
    put("default");
    TenantPolicy pods;
    pods.name = "pods/{pod}";
    pods.matches.push_back({.user = {}, .group = {}, .cgroup = "/pod-{pod}", .unit = {}, .members = {"*"}});
    policy.tenants.push_back(pods);
    publish();
    node.refresh();
    Instances instances(node, [](auto&&...) -> Result<void> { return Error{"made"}; }, cgroups.path());
    const auto given = [&](int tries, uid_t owner, uid_t user) {
        int count = 0;
        for (int n = 0; n < tries; ++n) {
            const auto subject = pod(n, owner, user);
            REQUIRE(subject);
            if (instances.make_for(*subject, user).error() == "made") ++count;
        }
        return count;
    };
    CHECK(given(70, 1000, 1000) == 64);
    CHECK(given(1030, 0, 1001) == 1024);
    CHECK(given(1100, 0, 0) == 1100);
}

TEST_CASE_METHOD(NodeFixture, "a ledger has its number as soon as its tenant is known") {
    put("default");
    put("physics");
    publish();
    node.refresh();
    CHECK(watched("default").number() != 0);
    CHECK(watched("physics").number() != 0);
}

TEST_CASE_METHOD(NodeFixture, "a thousand tenants at rest cost little, and one that is woken is seen at once") {
    constexpr int count = 1000;
    put("default");
    for (int i = 1; i < count; ++i) put(fmt::format("user/#{}", i));
    publish();
    const std::filesystem::path tenants = directory / "tenants";
    std::filesystem::last_write_time(tenants, std::filesystem::last_write_time(tenants) - 1h);
    come_to_rest();
    const auto at_rest = [&] {
        return std::count_if(node.with_ledger().begin(), node.with_ledger().end(),
                             [](const Tenant* tenant) { return tenant->ledger().at_rest(); });
    };
    REQUIRE(at_rest() == count);
    constexpr int ticks = 20;
    const auto begin = cpu_seconds();
    for (int i = 0; i < ticks; ++i) tick();
    WARN(fmt::format("{} tenants at rest: {:.2f} ms of CPU time for each second", count,
                     (cpu_seconds() - begin) / ticks * 1000));
    auto ledger = open("user/#700");
    const auto owner = claim(ledger);
    charge(ledger, owner, 3);
    tick();
    CHECK(watched("user/#700").figures().usage(device, Resource::qp) == 3);
    CHECK(at_rest() == count - 1);
}
