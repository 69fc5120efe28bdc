// What `set` and `unset` change, and what they say of it.
#include <catch2/catch.hpp>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/limits/change_limits.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/views/snapshot_json.hpp"
#include "tools/common/views/json.hpp"

using namespace rdmaquota;

namespace {

struct Changed : TenantNode {
    Changed() {
        Policy policy;
        limit(policy.tenant("default"), 10);
        limit(policy.tenant("blue"), 20, "rxe0");
        row_for(policy.tenant("default").limits[index(Scope::process)], "*")[index(Resource::qp)] = 3;
        row_for(policy.process, "*")[index(Resource::qp)] = 5;
        publish(policy);
    }
    std::uint64_t limit_of(const std::string& tenant, Scope scope) const {
        return LimitsSegment::open(limits_path(here_path(path, tenant)))->limit(scope, "rxe0", Resource::qp);
    }
    LimitDone set(const std::string& tenant, Scope scope, const std::string& device, std::uint64_t limit) const {
        return set_in(path, tenant, scope, device, limit);
    }
    static LimitDone set_in(const std::string& directory, const std::string& tenant, Scope scope,
                            const std::string& device, std::uint64_t limit) {
        const auto done = set_limits(directory, {{{tenant, scope, device, Resource::qp}, limit}});
        REQUIRE(done);
        REQUIRE(done->size() == 1);
        return done->front();
    }
    void hold(std::uint64_t limit) const {
        auto writer = LimitsWriter::open(limits_path(here_path(path, "blue")));
        REQUIRE(writer);
        REQUIRE(writer->hold(Scope::tenant, "rxe0", Resource::qp, limit, Reason::rule, "memory is scarce"));
    }
};

}  // namespace

TEST_CASE_METHOD(Changed, "a change says what was and is configured, and what is in force instead") {
    hold(7);
    const auto done = set("blue", Scope::tenant, "rxe0", 15);
    CHECK(done.before == 20);
    CHECK(done.after == 15);
    CHECK(done.in_force == 7);
    CHECK(done.reason == Reason::rule);
    CHECK(set("default", Scope::tenant, "rxe0", 4).before == 10);  // from "*"
    CHECK(limit_of("default", Scope::tenant) == 4);
    CHECK(limit_of("blue", Scope::process) == 5);
}

TEST_CASE_METHOD(Changed, "why a device's limit is held under \"*\" is said, too") {
    auto writer = LimitsWriter::open(limits_path(here_path(path, "default")));
    REQUIRE(writer);
    REQUIRE(writer->hold(Scope::tenant, "*", Resource::qp, 2, Reason::rule, ""));
    writer = Error{"closed"};
    const auto done = unset_limits(path, {{"default", Scope::tenant, "rxe0", Resource::qp}});
    REQUIRE(done);
    CHECK(done->front().after == 10);
    CHECK(done->front().in_force == 2);
    CHECK(done->front().reason == Reason::rule);
}

TEST_CASE_METHOD(Changed, "a limit of everyone's processes leaves a tenant's own alone") {
    set("", Scope::process, "*", 8);
    CHECK(limit_of("default", Scope::process) == 3);
    CHECK(limit_of("blue", Scope::process) == 8);
    set("default", Scope::process, "*", 6);
    CHECK(limit_of("default", Scope::process) == 6);
    CHECK(limit_of("blue", Scope::process) == 8);
}

TEST_CASE_METHOD(Changed, "in a directory of its own a tenant's processes have the limits that are set") {
    const auto own = here_path(path, "default");
    CHECK(set_in(own, "", Scope::process, "*", 9).after == 9);
    CHECK(limit_of("default", Scope::process) == 9);
    CHECK(limit_of("blue", Scope::process) == 5);
    CHECK(set_in(own, "default", Scope::process, "*", 11).before == 9);
    const auto done = unset_limits(own, {{"", Scope::process, "*", Resource::qp}});
    REQUIRE(done);
    CHECK(done->front().after == 3);
}

TEST_CASE_METHOD(Changed, "what cannot be changed says why") {
    const LimitKey unknown{"green", Scope::tenant, "*", Resource::qp};
    CHECK_THAT(set_limits(path, {{unknown, 1}}).error(), Catch::Contains("no tenant 'green'"));
    for (int i = 0; i < 65; ++i) set("blue", Scope::tenant, "d" + std::to_string(i), 1);
    const LimitKey one_more{"blue", Scope::tenant, "d65", Resource::qp};
    CHECK_THAT(set_limits(path, {{one_more, 1}}).error(), Catch::Contains("tenant blue has limits for 66 already"));
    CHECK(set_limits(path, {{{"blue", Scope::tenant, "d64", Resource::qp}, 2}}));
}

TEST_CASE_METHOD(Changed, "a view has what is configured and what is in force") {
    hold(7);
    auto ledger = open("blue");
    const auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    const Limits none[Amounts::capacity];
    REQUIRE_FALSE(ledger.charge(*owner, *ledger.device_index("rxe0"), Amounts{}.add(Resource::qp, 2), none));
    const auto tenants = read_tenants(path, "blue");
    REQUIRE(tenants);
    REQUIRE(tenants->size() == 1);
    const auto json = tenant_json(tenants->front().view);
    CHECK(json["name"] == "blue");
    CHECK(json["parent"] == "node");
    CHECK(json["mode"] == "enforce");
    CHECK(json["weight"] == 100);
    const auto qp = json["devices"]["rxe0"]["qp"];
    CHECK(qp["usage"] == 2);
    CHECK(qp["limit"] == 7);
    CHECK(qp["peak"] == 2);
    CHECK(qp["configured"] == 20);
    CHECK(qp["reason"] == "rule");
    REQUIRE(json["processes"].size() == 1);
    const auto process = json["processes"][0];
    CHECK(process["pid"] == identity_of_self().pid);
    CHECK(process["devices"]["rxe0"]["qp"] == Json{{"usage", 2}, {"limit", 5}});
    const auto held = held_json(tenants->front().held);
    REQUIRE(held.size() == 1);
    CHECK(held[0]["scope"] == "tenant");
    CHECK(held[0]["device"] == "rxe0");
    CHECK(held[0]["resource"] == "qp");
    CHECK(held[0]["limit"] == 7);
    CHECK(held[0]["configured"] == 20);
    CHECK(held[0]["kind"] == "rule");
    CHECK(held[0]["reason"] == "memory is scarce");
}

TEST_CASE_METHOD(Changed, "sums over devices are shown where they are limited, and leave out ports") {
    set("blue", Scope::tenant, "total", 9);
    auto ledger = open("blue");
    const auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    const Limits none[Amounts::capacity];
    for (const auto* device : {"rxe0", "rxe1", "rxe1/1"})
        REQUIRE_FALSE(ledger.charge(*owner, *ledger.device_index(device), Amounts{}.add(Resource::qp, 2), none));
    NodeProcesses processes;
    const auto reading = read_place(*find_tenant(path, "blue"), processes);
    REQUIRE(reading);
    CHECK(usage_of(reading->view.devices, "total", Resource::qp) == 4);
    CHECK(usage_of(reading->view.devices, "rxe1/1", Resource::qp) == 2);
    CHECK(usage_of(reading->view.devices, "rxe9", Resource::qp) == 0);
    CHECK_FALSE(reading->view.devices.back().resources.front().peak);
}
