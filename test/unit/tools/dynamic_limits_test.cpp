#include <filesystem>

#include <catch2/catch.hpp>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/set_limits.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"

using namespace rdmaquota;

namespace {

// A quota directory in which each process may have 100 QPs, and a rule that halves that from 900 bytes on.
struct Fixture {
    TemporaryDirectory directory;
    std::uint64_t used = 0;
    QuotaDirectory node{directory.path()};
    NodeEvents events;
    DynamicLimits limits{node, events, [this](const std::string&, Resource) { return used; },
                         [](CapacityOf, const std::string&, Resource) { return 0; }};
    DynamicRule rule;

    Fixture() {
        REQUIRE(Ledger::create(ledger_path(directory.path()), {}));
        Policy policy;
        row_for(policy.process, "*")[index(Resource::qp)] = 100;
        REQUIRE(LimitsWriter::publish(policy_path(directory.path()), policy));
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
    std::uint64_t now() { return node.policy().limit(Scope::process, "rxe0", Resource::qp); }
    std::uint64_t cell() { return load_limit(node.policy().row(Scope::process, "rxe0"), Resource::qp); }
    void apply(std::uint64_t usage) {
        used = usage;
        limits.apply();
    }
    std::vector<ChangedLimit> recorded() { return limit_changes(directory.path(), node.policy()); }
};

ChangedLimit change(std::uint64_t from, std::uint64_t limit) {
    ChangedLimit change;
    change.scope = Scope::process;
    change.device = "rxe0";
    change.resource = Resource::qp;
    change.limit = limit;
    change.from = from;
    return change;
}

}  // namespace

TEST_CASE("a changed limit is in force, recorded and told, and goes back to the row that decided before") {
    Fixture f;
    f.apply(900);
    CHECK(f.now() == 50);
    REQUIRE(f.recorded().size() == 1);
    CHECK(configured_limit(f.node.policy(), f.recorded()[0]) == 100);
    REQUIRE(f.events.all().size() == 1);
    CHECK(f.events.all()[0].kind == "tightened");
    f.apply(950);
    CHECK(f.events.all().size() == 1);
    f.apply(100);
    CHECK(f.now() == 100);
    CHECK(f.cell() == unset);
    CHECK(f.recorded().empty());
    CHECK_FALSE(std::filesystem::exists(f.directory / "changed.json"));
    CHECK(f.events.all().back().kind == "restored");
}

TEST_CASE("an orderly end puts the configured limit back") {
    Fixture f;
    f.apply(900);
    f.limits.restore();
    CHECK(f.cell() == unset);
    CHECK(f.recorded().empty());
}

TEST_CASE("a successor goes on from the record, whenever its predecessor died") {
    Fixture f;
    SECTION("before the limit was set") {
        REQUIRE(write_limit_changes(f.directory.path(), f.node.policy(), {change(unset, 50)}));
        CHECK(f.recorded().empty());
    }
    SECTION("after it was set") {
        REQUIRE(write_limit_changes(f.directory.path(), f.node.policy(), {change(unset, 50)}));
        REQUIRE(f.node.policy_writer()->set(Scope::process, "rxe0", Resource::qp, 50));
        CHECK(f.recorded().size() == 1);
    }
    SECTION("between two tightened limits") {
        REQUIRE(write_limit_changes(f.directory.path(), f.node.policy(), {change(50, 25)}));
        REQUIRE(f.node.policy_writer()->set(Scope::process, "rxe0", Resource::qp, 50));
        CHECK(f.recorded().size() == 1);
    }
    SECTION("after it was put back") {
        REQUIRE(write_limit_changes(f.directory.path(), f.node.policy(), {change(50, 50)}));
        CHECK(f.recorded().empty());
    }
    f.limits.start({f.rule});
    f.apply(900);
    CHECK(f.now() == 50);
    f.apply(0);
    CHECK(f.cell() == unset);
    CHECK(f.recorded().empty());
}

TEST_CASE("what an administrator sets meanwhile is not undone") {
    Fixture f;
    f.apply(900);
    REQUIRE(f.node.policy_writer()->set(Scope::process, "rxe0", Resource::qp, 30));
    f.apply(900);
    CHECK(f.now() == 15);
    f.apply(0);
    CHECK(f.now() == 30);
}

TEST_CASE("nor is it when it is what the rule has set") {
    Fixture f;
    f.apply(900);
    REQUIRE(set_limits(*f.node.policy_writer(), {Scope::process, "rxe0", {{Resource::qp, 50}}}));
    SECTION("seen at once") { f.apply(800); }
    SECTION("seen by the next daemon") { f.limits.start({f.rule}); }
    f.apply(0);
    CHECK(f.now() == 50);
    CHECK(f.recorded().empty());
    f.apply(900);
    CHECK(f.now() == 25);
    f.apply(0);
    CHECK(f.now() == 50);
}

TEST_CASE("what an administrator set before a rule changed it is put back") {
    Fixture f;
    REQUIRE(set_limits(*f.node.policy_writer(), {Scope::process, "rxe0", {{Resource::qp, 60}}}));
    f.apply(900);
    f.apply(900);
    CHECK(f.now() == 30);
    f.apply(0);
    CHECK(f.now() == 60);
}

TEST_CASE("a record of another policy counts for nothing, and is removed") {
    Fixture f;
    f.apply(900);
    auto policy = f.node.policy().decompile();
    REQUIRE(LimitsWriter::publish(policy_path(f.directory.path()), policy));
    CHECK(f.recorded().size() == 1);  // what the old one says
    REQUIRE(f.node.refresh());
    CHECK(f.recorded().empty());
    f.limits.start({});
    CHECK_FALSE(std::filesystem::exists(f.directory / "changed.json"));
    f.apply(0);
    CHECK(f.now() == 50);
}

TEST_CASE("no limit changes when that cannot be recorded") {
    Fixture f;
    std::filesystem::create_directory(f.directory / "changed.json");
    std::filesystem::create_directory(f.directory / "changed.json/full");
    f.apply(900);
    CHECK(f.now() == 100);
}

TEST_CASE("a rule that the policy no longer has leaves nothing changed") {
    Fixture f;
    f.apply(900);
    f.limits.start({});
    f.apply(900);
    CHECK(f.cell() == unset);
}
