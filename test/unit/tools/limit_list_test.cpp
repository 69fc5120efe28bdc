// `show --limits` and `show` agree, and a device is listed once.
#include <catch2/catch.hpp>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/guard/guard_counts.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/limits/limit_list.hpp"

using namespace rdmaquota;

namespace {

LimitsSegment limits_of_blue(const std::string& directory) {
    auto limits = LimitsSegment::open(limits_path(here_path(directory, "blue")), LimitsSegment::Parts::all);
    REQUIRE(limits);
    return std::move(*limits);
}

LimitView view_of_device(const LimitsSegment& limits, const std::string& device) {
    for (const auto& view : limits_in_force(limits))
        if (view.device == device && view.resource == Resource::qp) return view;
    FAIL("no limit of QPs on " << device);
    return {};
}

}  // namespace

TEST_CASE_METHOD(TenantNode, "a device's share is listed with the limit and the soft limit that it inherits from \"*\"") {
    Policy policy;
    limit(policy.tenant("blue"), 20);
    row_for(policy.tenant("blue").softs, "*")[index(Resource::qp)] = 15;
    publish(policy);
    auto writer = LimitsWriter::open(limits_path(here_path(path, "blue")));
    REQUIRE(writer);
    const LimitsWriter::Grant share{"rxe0", Resource::qp, 8};
    REQUIRE(writer->grant(std::span(&share, 1), "the node has no more"));
    const auto view = view_of_device(limits_of_blue(path), "rxe0");
    CHECK(view.limit == 8);
    CHECK(view.configured == 20);
    CHECK(view.soft == 15);
    CHECK(view.from == "policy");
    CHECK(view.reason == Reason::grant);
}

TEST_CASE("the guard's figures join the device's, whatever the order of devices") {
    TenantView tenant;
    tenant.name = "blue";
    for (const auto* device : {"rxe1", "rxe0", "total"}) tenant.devices.push_back({device, {}});
    const auto guard = Json::parse(R"({"tenants": [{"name": "blue", "devices": {"rxe0": {"qp": {"used": 2}}, "rxe7": {"qp": {"used": 3}}}}]})");
    add_guard_counts(guard, tenant);
    std::vector<std::string> names;
    for (const auto& device : tenant.devices) names.push_back(device.name);
    CHECK(names == std::vector<std::string>{"rxe1", "rxe0", "rxe7", "total"});
    CHECK(tenant.devices[1].resources.at(0).kernel == 2);
}

TEST_CASE_METHOD(TenantNode, "a percentage is listed as it is written, and for each device with its amount") {
    Policy policy;
    limit(policy.tenant("blue"), percentage(250));
    publish(policy);
    auto writer = LimitsWriter::open(limits_path(here_path(path, "blue")));
    REQUIRE(writer);
    auto capacity = unset_row();
    capacity[index(Resource::qp)] = 1000;
    REQUIRE(writer->set_capacity("rxe0", capacity));
    const auto limits = limits_of_blue(path);
    CHECK(view_of_device(limits, "*").limit == unlimited);
    CHECK(view_of_device(limits, "*").written == percentage(250));
    CHECK(view_of_device(limits, "rxe0").limit == 250);
    CHECK(view_of_device(limits, "rxe0").from == "policy");
    const auto json = limits_json(limits_in_force(limits));
    CHECK(json[1].value("percent", 0.0) == 25.0);
    CHECK(json[1].value("limit", 0) == 250);
}
