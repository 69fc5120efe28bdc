#include <map>

#include <catch2/catch.hpp>

#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"

using namespace rdmaquota;

namespace {

const LimitKey qps_of_default{"default", Scope::process, "rxe0", Resource::qp};

// mr_bytes of rxe0 in a node of 1000 bytes; each process may have 100 QPs.
struct State {
    std::uint64_t used = 0;
    std::map<std::string, std::uint64_t> used_by{{"default", 0}};  // tenants, those that there are
    std::uint64_t configured = 100;
    std::uint64_t capacity = 1000;
    bool held = false;

    WantedLimits look(DynamicRules& rules) const {
        Surroundings now;
        now.devices = {"rxe0"};
        now.tenants = [this](const std::string& of) {
            std::vector<std::string> keys;
            for (const auto& [key, usage] : used_by)
                if (of == "*" || of == key) keys.push_back(key);
            return keys;
        };
        now.usage = [this](const std::string&, const std::string&, Resource) { return used; };
        now.tenant_usage = [this](const std::string& tenant, const std::string&, Resource) { return used_by.at(tenant); };
        now.configured = [this](const LimitKey&) { return configured; };
        now.capacity = [this](CapacityOf, const std::string&, Resource) { return capacity; };
        now.held = [this](const LimitKey&) { return held; };
        return rules.evaluate(now);
    }
};

DynamicRule tightening() {
    DynamicRule rule;
    rule.watch = Resource::mr_bytes;
    rule.of = CapacityOf::node;
    rule.above = 90;
    rule.below = 70;
    rule.limit = Resource::qp;
    rule.scope = Scope::process;
    rule.factor = 50;
    rule.floor = 8;
    return rule;
}

}  // namespace

TEST_CASE("a rule tightens from above until below, and not in between") {
    DynamicRules rules({tightening()});
    State state;
    state.used = 899;
    CHECK(state.look(rules).empty());
    state.used = 900;
    auto wanted = state.look(rules);
    REQUIRE(wanted.size() == 1);
    CHECK(wanted.begin()->first == qps_of_default);
    CHECK(wanted.begin()->second.limit == 50);
    CHECK(wanted.begin()->second.reason ==
          "[[dynamic]] rule 1: mr_bytes at 90 % of 1000, until 70 %");
    state.used = 701;
    CHECK(state.look(rules).size() == 1);
    state.used = 700;
    CHECK(state.look(rules).empty());
    state.used = 899;
    CHECK(state.look(rules).empty());
}

TEST_CASE("a limit is never tightened below the floor, nor loosened by it") {
    DynamicRules rules({tightening()});
    State state;
    state.used = 1000;
    state.configured = 10;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->second.limit == 8);
    state.configured = 5;
    CHECK(state.look(rules).empty());
}

TEST_CASE("where no limit is configured, the floor holds while it is tight") {
    DynamicRules rules({tightening()});
    State state;
    state.used = 1000;
    state.configured = unlimited;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->second.limit == 8);
}

TEST_CASE("a factor over 100 relaxes while there is room") {
    auto rule = tightening();
    rule.factor = 200;
    DynamicRules rules({rule});
    State state;
    state.used = 800;
    CHECK(state.look(rules).empty());
    state.used = 700;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->second.limit == 200);
    state.used = 899;
    CHECK(state.look(rules).size() == 1);
    state.used = 900;
    CHECK(state.look(rules).empty());
}

TEST_CASE("a daemon that is started again keeps in between what its predecessor changed") {
    State state;
    state.used = 800;
    state.held = true;
    DynamicRules tight({tightening()});
    CHECK(state.look(tight).size() == 1);
    state.used = 600;
    CHECK(state.look(tight).empty());
}

TEST_CASE("where rules meet, the smallest limit holds") {
    auto other = tightening();
    other.factor = 20;
    DynamicRules rules({tightening(), other});
    State state;
    state.used = 950;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->second.limit == 20);
    CHECK_THAT(state.look(rules).begin()->second.reason, Catch::StartsWith("[[dynamic]] rule 2: "));
}

TEST_CASE("a rule whose capacity is not known does nothing") {
    DynamicRules rules({tightening()});
    State state;
    state.used = 1000;
    state.capacity = 0;
    CHECK(state.look(rules).empty());
}

TEST_CASE("a rule for one device watches that one alone, one for each device the machine's") {
    auto elsewhere = tightening();
    elsewhere.device = "mlx5_7";
    DynamicRules rules({elsewhere});
    State state;
    state.used = 1000;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->first.device == "mlx5_7");
}

TEST_CASE("a rule is for the tenant that it names, or for each one") {
    State state;
    state.used = 950;
    state.used_by = {{"default", 0}, {"physics", 0}};
    DynamicRules all({tightening()});
    CHECK(state.look(all).size() == 2);
    auto for_one = tightening();
    for_one.tenant = "physics";
    DynamicRules one({for_one});
    REQUIRE(state.look(one).size() == 1);
    CHECK(state.look(one).begin()->first.tenant == "physics");
}

TEST_CASE("a rule that watches limits tightens for those tenants that are near theirs") {
    auto rule = tightening();
    rule.of = CapacityOf::limit;
    DynamicRules rules({rule});
    State state;
    state.configured = 1000;
    state.used_by = {{"default", 950}, {"physics", 100}};
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->first.tenant == "default");
    state.used_by = {{"default", 800}, {"physics", 900}};
    CHECK(state.look(rules).size() == 2);
    state.used_by["default"] = 700;
    REQUIRE(state.look(rules).size() == 1);
    CHECK(state.look(rules).begin()->first.tenant == "physics");
}
