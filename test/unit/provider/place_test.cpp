// Which tenant a device is charged to that is opened now, and accounts with several tenants.
#include <catch2/catch.hpp>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/charging/accounts.hpp"
#include "provider/charging/context.hpp"
#include "provider/charging/place.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "shm/policy/node_policy.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

// A node's directory with the tenants `default` and `blue`, each with a ledger; nothing matches at first.
struct Node {
    TemporaryDirectory directory;

    Node() {
        REQUIRE(mkdir((directory / "tenants").c_str(), 0755) == 0);
        make("default");
        make("blue");
        publish({});
        setenv("RDMAQUOTA_DIR", directory.path().c_str(), 1);
    }
    ~Node() { unsetenv("RDMAQUOTA_DIR"); }

    void make(const std::string& tenant) const {
        const auto here = here_path(directory.path(), tenant);
        for (const auto& path : {tenant_directory(directory.path(), tenant), here, here + "/ledgers"})
            REQUIRE(mkdir(path.c_str(), 0755) == 0);
        TenantLimits limits;
        limits.tenant = tenant;
        REQUIRE(LimitsWriter::publish(limits_path(here), limits));
        REQUIRE(Ledger::create(ledger_path(here), {}));
    }
    // This user is in `tenant`; in none for the empty name.
    void publish(const std::string& tenant) const {
        Policy policy;
        if (!tenant.empty()) policy.tenant(tenant).matches.push_back({std::to_string(geteuid()), {}, {}, {}, {}});
        const auto path = node_policy_path(directory.path());
        const auto lock = PolicyLock::take(path);
        REQUIRE(lock);
        const auto number = [](const std::string& name) { return std::optional(static_cast<uid_t>(std::stoul(name))); };
        REQUIRE(publish_node_policy(*lock, path, policy, {number, number}));
    }
    std::string here(std::string_view tenant) const { return here_path(directory.path(), tenant); }
    std::size_t owners(std::string_view tenant) const {
        auto ledger = Ledger::open(ledger_path(here(tenant)));
        REQUIRE(ledger);
        ledger->reap();
        return ledger->owners().size();
    }
    std::uint64_t devices_open(std::string_view tenant) const {
        auto ledger = Ledger::open(ledger_path(here(tenant)));
        REQUIRE(ledger);
        const auto device = ledger->device_index("fake0");
        return device ? ledger->tenant_usage(*device, Resource::pd) : 0;
    }
};

}  // namespace

TEST_CASE_METHOD(Node, "a process that nothing matches is in default") {
    const auto place = find_place(directory.path());
    REQUIRE(place);
    CHECK(place->here == here("default"));
    CHECK(place->is_default);
    CHECK(place->note.empty());
}

TEST_CASE_METHOD(Node, "a match decides") {
    publish("blue");
    const auto place = find_place(directory.path());
    REQUIRE(place);
    CHECK(place->here == here("blue"));
    CHECK_FALSE(place->is_default);
}

TEST_CASE_METHOD(Node, "a tenant of a template that was not made yet is default, with a note") {
    publish("user/{user}");
    errno = 7;
    const auto place = find_place(directory.path());
    CHECK(errno == 7);
    REQUIRE(place);
    CHECK(place->here == here("default"));
    CHECK_THAT(place->note, Catch::Contains("has not been made yet") && Catch::Contains("start rdmaquotad"));
    make("user/" + user_element(geteuid()));
    CHECK(find_place(directory.path())->here == here("user/" + user_element(geteuid())));
}

TEST_CASE_METHOD(Node, "a directory with limits at its top is one tenant's own, whatever matches") {
    publish("blue");
    const auto place = find_place(here("default"));
    REQUIRE(place);
    CHECK(place->here == here("default"));
    CHECK(place->directory == here("default"));
    CHECK_FALSE(place->is_default);
}

TEST_CASE_METHOD(Node, "a directory without a policy says what is missing") {
    REQUIRE(unlink(node_policy_path(directory.path()).c_str()) == 0);
    const auto place = find_place(directory.path());
    REQUIRE_FALSE(place);
    CHECK_THAT(place.error(), Catch::Contains(node_policy_path(directory.path())) && Catch::Contains("rdmaquota reload"));
}

TEST_CASE_METHOD(Node, "objects stay with the tenant in which their device was opened") {
    auto first = std::make_unique<Context>("fake0", "fake0");
    const auto charged = first->charge(Kind::pd, 0);
    REQUIRE(charged);
    publish("blue");
    auto second = std::make_unique<Context>("fake0", "fake0");
    REQUIRE(second->charge(Kind::pd, 0));
    REQUIRE(second->charge(Kind::pd, 0));
    CHECK(devices_open("default") == 1);
    CHECK(devices_open("blue") == 2);
    CHECK(owners("default") == 1);
    CHECK(owners("blue") == 1);
    Context third("fake0", "fake0");
    CHECK(owners("blue") == 1);  // one slot for all contexts of a tenant
    first.reset();
    CHECK(owners("default") == 0);
    CHECK(owners("blue") == 1);
}

TEST_CASE_METHOD(Node, "what is opened after a ledger was replaced is charged in the new one") {
    Context before("fake0", "fake0");
    REQUIRE(before.charge(Kind::pd, 0));
    REQUIRE(Ledger::replace(ledger_path(here("default"))));
    CHECK(devices_open("default") == 0);
    Context after("fake0", "fake0");
    REQUIRE(after.charge(Kind::pd, 0));
    CHECK(devices_open("default") == 1);
}

TEST_CASE_METHOD(Node, "a ledger that is missing is made for default only") {
    std::error_code error;
    for (const auto* tenant : {"default", "blue"}) std::filesystem::remove_all(ledger_path(here(tenant)), error);
    Context in_default("fake0", "fake0");
    REQUIRE(in_default.charge(Kind::pd, 0));
    CHECK(devices_open("default") == 1);

    publish("blue");
    Context in_blue("fake0", "fake0");
    CHECK(in_blue.charge(Kind::pd, 0));  // not counted
    CHECK_FALSE(Ledger::open(ledger_path(here("blue"))));
    const auto accounts = join_accounts();
    CHECK(accounts.count == 0);
    CHECK_FALSE(accounts.denied);
    leave_accounts(accounts);
}

TEST_CASE_METHOD(Node, "where a ledger is missing, its tenant's policy may deny everything") {
    publish("blue");
    TenantLimits limits;
    limits.on_unavailable = Unavailable::deny;
    limits.deny_errno = ENOMEM;
    REQUIRE(LimitsWriter::publish(limits_path(here("blue")), limits));
    std::filesystem::remove_all(ledger_path(here("blue")));
    const auto accounts = join_accounts();
    CHECK(accounts.count == 0);
    CHECK(accounts.denied);
    CHECK(accounts.deny_errno == ENOMEM);
    leave_accounts(accounts);
}

TEST_CASE_METHOD(Node, "a directory that is hidden is used at its second place") {
    const auto second = directory.path();
    const TemporaryDirectory empty;
    for (const auto& hidden : {empty.path(), empty / "missing"}) {
        const auto accounts = join_accounts({{hidden, second.c_str()}});
        REQUIRE(accounts.count == 1);
        CHECK(accounts.account[0]->here() == here("default"));
        CHECK(accounts.account[0]->directory() == second);
        leave_accounts(accounts);
    }
    const auto nowhere = empty / "nowhere";
    CHECK(join_accounts({{empty.path(), nowhere.c_str()}}).count == 0);
}

TEST_CASE_METHOD(Node, "a directory whose ledger is read-only is used at its second place, or may deny") {
    if (geteuid() != 0) return;  // mounts
    TenantLimits limits;
    limits.on_unavailable = Unavailable::deny;
    REQUIRE(LimitsWriter::publish(limits_path(here("default")), limits));
    const TemporaryDirectory shown;
    ChildProcess child([&] {
        const auto* place = shown.path().c_str();
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount(directory.path().c_str(), place, nullptr, MS_BIND, nullptr) != 0 ||
            mount(nullptr, place, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0)
            _exit(1);
        const auto held = join_accounts({{shown.path(), directory.path().c_str()}});
        if (held.count != 1 || held.denied || held.account[0]->here() != here("default")) _exit(2);
        const TemporaryDirectory empty;
        const auto denied = join_accounts({{shown.path(), empty.path().c_str()}});
        _exit(denied.count == 0 && denied.denied ? 0 : 3);
    });
    CHECK(child.wait() == 0);
}

TEST_CASE_METHOD(Node, "a directory that is seen is used at its first place only") {
    const Node second;
    setenv("RDMAQUOTA_DIR", directory.path().c_str(), 1);
    const std::vector<QuotaDirectory> both{{directory.path(), second.directory.path().c_str()}};
    const auto accounts = join_accounts(both);
    REQUIRE(accounts.count == 1);
    CHECK(accounts.account[0]->here() == here("default"));
    CHECK(second.owners("default") == 0);
    leave_accounts(accounts);

    TenantLimits limits;
    limits.on_unavailable = Unavailable::deny;
    REQUIRE(LimitsWriter::publish(limits_path(here("default")), limits));
    std::filesystem::resize_file(data_path(ledger_path(here("default"))), 0);
    const auto unusable = join_accounts(both);
    CHECK(unusable.count == 0);
    CHECK(unusable.denied);
}

TEST_CASE_METHOD(Node, "a tenant's slot is shared, and freed once") {
    const auto first = join_accounts(), second = join_accounts();
    REQUIRE(first.count == 1);
    CHECK(first.account[0] == second.account[0]);
    CHECK(first.account[0]->tenant() == "default");
    publish("blue");
    const auto third = join_accounts();
    REQUIRE(third.count == 1);
    CHECK(third.account[0] != first.account[0]);
    CHECK(third.account[0]->tenant() == "blue");
    leave_accounts(first);
    CHECK(owners("default") == 1);
    leave_accounts(second);
    CHECK(owners("default") == 0);
    CHECK(owners("blue") == 1);
    leave_accounts(third);
    CHECK(owners("blue") == 0);
}

TEST_CASE_METHOD(Node, "a child has slots of its own, and leaves its parent's") {
    publish("blue");
    const auto accounts = join_accounts();
    REQUIRE(accounts.count == 1);
    ChildProcess child([&] {
        leave_accounts(accounts);  // the parent's
        const auto own = join_accounts();
        const bool other = own.count == 1 && own.account[0] != accounts.account[0];
        _exit(other && owners("blue") == 2 ? 0 : 1);
    });
    CHECK(child.wait() == 0);
    CHECK(owners("blue") == 1);  // the child did not free it
    leave_accounts(accounts);
    CHECK(owners("blue") == 0);
}
