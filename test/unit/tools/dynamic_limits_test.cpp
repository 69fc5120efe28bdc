#include <filesystem>

#include <catch2/catch.hpp>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"

using namespace rdmaquota;

namespace {

// A directory of one tenant, in which each process may have 100 QPs, and a rule that halves that from 900 bytes on.
struct Fixture {
    TemporaryDirectory directory;
    Node node{directory.path()};
    NodeEvents events;
    DynamicLimits limits{node, events, [](CapacityOf, const std::string&, Resource) { return 0; }};
    DynamicRule rule;

    Fixture() {
        REQUIRE(std::filesystem::create_directory(directory / "ledgers"));
        REQUIRE(Ledger::create(ledger_path(directory.path()), {}));
        publish();
        REQUIRE(node.refresh());
        rule.device = "rxe0";
        rule.watch = Resource::mr_bytes;
        rule.of = CapacityOf::amount;
        rule.capacity = 1000;
        rule.limit = Resource::qp;
        rule.scope = Scope::process;
        rule.floor = 4;
        limits.start({rule});
    }
    void publish() {
        TenantLimits of_tenant;
        row_for(of_tenant.limits[index(Scope::process)], "*")[index(Resource::qp)] = 100;
        REQUIRE(LimitsWriter::publish(limits_path(directory.path()), of_tenant));
    }
    Tenant& tenant() { return node.tenants().begin()->second; }
    std::uint64_t now() {
        node.refresh();
        return tenant().limits()->limit(Scope::process, "rxe0", Resource::qp);
    }
    void apply(DynamicLimits& by, std::uint64_t usage) {
        KernelUse use;
        use.device = "rxe0";
        use.live[index(Resource::mr_bytes)] = usage;
        node.refresh();
        by.apply({"rxe0"}, NodeUsage(node, {use}, [](Resource) { return false; }));
    }
    void apply(std::uint64_t usage) { apply(limits, usage); }
    void set(std::string_view device, std::uint64_t limit) {
        const Setting setting{Resource::qp, limit};
        auto writer = tenant().writer();
        REQUIRE(writer);
        REQUIRE(writer->set(Scope::process, device, {&setting, 1}));
    }
};

}  // namespace

TEST_CASE("a changed limit is in force and told, and goes back to the row that decided before") {
    Fixture f;
    f.apply(900);
    CHECK(f.now() == 50);
    REQUIRE(f.tenant().held().size() == 1);
    CHECK(f.tenant().held()[0].configured == 100);
    REQUIRE(f.events.all().size() == 1);
    CHECK(f.events.all()[0].kind == "tightened");
    CHECK(f.events.all()[0].fields["tenant"] == "default");
    f.apply(950);
    CHECK(f.events.all().size() == 1);
    f.apply(100);
    CHECK(f.now() == 100);
    CHECK(f.tenant().held().empty());
    CHECK(f.events.all().back().kind == "restored");
    f.set("*", 70);
    CHECK(f.now() == 70);
}

TEST_CASE("an orderly end releases what rules hold") {
    Fixture f;
    f.apply(900);
    f.limits.restore();
    CHECK(f.now() == 100);
    CHECK(f.tenant().held().empty());
}

TEST_CASE("a successor goes on from what its predecessor held") {
    Fixture f;
    f.apply(900);
    DynamicLimits next(f.node, f.events, [](CapacityOf, const std::string&, Resource) { return 0; });
    next.start({f.rule});
    f.apply(next, 800);
    CHECK(f.now() == 50);
    CHECK(f.events.all().size() == 1);
    f.apply(next, 600);
    CHECK(f.now() == 100);
}

TEST_CASE("what an administrator sets meanwhile counts as configured") {
    Fixture f;
    f.apply(900);
    SECTION("for the device") { f.set("rxe0", 30); }
    SECTION("what the rule has computed") { f.set("rxe0", 50); }
    const auto set = f.tenant().limits()->configured(Scope::process, "rxe0", Resource::qp);
    f.apply(900);
    CHECK(f.now() == set / 2);
    f.apply(0);
    CHECK(f.now() == set);
}

TEST_CASE("a new policy begins with its own limits") {
    Fixture f;
    f.apply(900);
    f.publish();
    CHECK(f.now() == 100);
    f.apply(900);
    CHECK(f.now() == 50);
}

TEST_CASE("a rule that the policy no longer has leaves nothing changed") {
    Fixture f;
    f.apply(900);
    f.limits.start({});
    f.apply(900);
    CHECK(f.now() == 100);
    CHECK(f.tenant().held().empty());
}
