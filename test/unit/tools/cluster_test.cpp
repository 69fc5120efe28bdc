// Limits over many nodes, on the node: the effective limit, what is below it, and the texts that are kept.
#include <catch2/catch.hpp>

#include "policy/file/cluster_file.hpp"
#include "policy/file/policy_file.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "test/unit/tools/physics.hpp"
#include "tools/common/cluster/ceilings_json.hpp"
#include "tools/common/views/json.hpp"

using namespace rdmaquota;

namespace {

constexpr auto qp = Resource::qp;

struct LimitsFile {
    TemporaryDirectory directory;
    std::string path = directory / "limits";

    LimitsSegment all() const { return std::move(*LimitsSegment::open(path, LimitsSegment::Parts::all)); }
    LimitsWriter writer() const { return std::move(*LimitsWriter::open(path)); }
    std::uint64_t limit(std::string_view device = total_device) const { return all().limit(Scope::tenant, device, qp); }
    Reason reason() const { return all().reason(Scope::tenant, total_device, qp); }
};

}  // namespace

TEST_CASE_METHOD(LimitsFile, "a ceiling of the cluster bounds the sum over devices, and says so") {
    TenantLimits limits;
    row_for(limits.limits[index(Scope::tenant)], total_device)[index(qp)] = 50;
    REQUIRE(LimitsWriter::publish(path, limits));
    const auto generation = all().generation();
    REQUIRE(writer().put_ceiling(qp, 20));
    CHECK(limit() == 20);
    CHECK(reason() == Reason::cluster);
    CHECK(all().generation() != generation);
    CHECK(limit("rxe0") == unlimited);

    SECTION("what is configured and is lower holds") {
        REQUIRE(writer().set(Scope::tenant, total_device, qp, 10));
        CHECK(limit() == 10);
        CHECK(reason() == Reason::configured);
        REQUIRE(writer().put_ceiling(qp, 5));
        CHECK(limit() == 5);
    }
    SECTION("a rule holds no more than that") {
        REQUIRE(writer().hold(Scope::tenant, total_device, qp, 30, Reason::rule, ""));
        CHECK(limit() == 20);
        REQUIRE(writer().put_ceiling(qp, 8));
        CHECK(limit() == 8);
    }
    SECTION("the lower of a share and a ceiling holds") {
        const LimitsWriter::Grant grant{total_device, qp, 30};
        REQUIRE(writer().grant(std::span(&grant, 1), "share"));
        CHECK(limit() == 20);
        REQUIRE(writer().put_ceiling(qp, 40));
        CHECK(limit() == 30);
        CHECK(reason() == Reason::grant);
    }
    SECTION("it stays when the policy is put in force again") {
        REQUIRE(LimitsWriter::publish(path, limits));
        CHECK(limit() == 20);
        CHECK(reason() == Reason::cluster);
    }
    SECTION("without it the configured limit holds again") {
        REQUIRE(writer().put_ceiling(qp, unset));
        CHECK(limit() == 50);
        CHECK(reason() == Reason::configured);
    }
}

TEST_CASE_METHOD(LimitsFile, "a tenant with the key cluster begins with nothing") {
    TenantLimits limits;
    limits.cluster = {qp};
    REQUIRE(LimitsWriter::publish(path, limits));
    CHECK(limit() == 0);
    CHECK(reason() == Reason::cluster);
    REQUIRE(writer().put_ceiling(qp, 7));
    REQUIRE(LimitsWriter::publish(path, limits));
    CHECK(limit() == 7);

    const auto of_instance = directory / "instance";
    REQUIRE(LimitsWriter::publish_instance(of_instance, limits, all()));
    CHECK(LimitsSegment::open(of_instance)->limit(Scope::tenant, total_device, qp) == 0);
}

TEST_CASE_METHOD(Physics, "the tenants below one with a ceiling share that") {
    pass();
    auto writer = LimitsWriter::open(limits_path(here_path(path, "physics")));
    REQUIRE(writer);
    REQUIRE(writer->put_ceiling(qp, 30));
    writer = Error{""};
    pass();
    std::uint64_t sum = 0;
    for (const auto& child : children) {
        const auto limits = LimitsSegment::open(limits_path(here_path(path, child)), LimitsSegment::Parts::all);
        REQUIRE(limits);
        sum += limits->limit(Scope::tenant, total_device, qp);
    }
    CHECK(sum == 30);
}

TEST_CASE("ceilings are kept as text, and come as JSON") {
    CeilingRecord record{1UL << 32, 7, {{4, {"physics/atlas", qp}, 12}, {5, {"user/#1000", Resource::mr_bytes}, unset}}};
    const auto text = record.text();
    REQUIRE(CeilingRecord::parse(text));
    CHECK(*CeilingRecord::parse(text) == record);
    for (std::size_t length = 0; length < text.size(); ++length) CHECK_FALSE(CeilingRecord::parse(std::string_view(text).substr(0, length)));

    const Delivery delivery{record.epoch, record.epoch, 7, "boot", record.ceilings};
    REQUIRE(parse_delivery(delivery_json(delivery)));
    CHECK(*parse_delivery(delivery_json(delivery)) == delivery);
    CHECK_FALSE(parse_delivery(Json::object()));
    const NodeReport report{"hardware", "boot", 1, 2, {{4, 12, 3, 5}}};
    REQUIRE(parse_report(report_json(report)));
    CHECK(*parse_report(report_json(report)) == report);
    CHECK_FALSE(parse_report(Json()));
}

TEST_CASE("the file of a cluster") {
    const auto file = parse_cluster_file("version = 1\n[tenant.physics]\nqp = 100\nmr_bytes = \"2GiB\"\n[node.\"n[08-10]\"]\nweight = 200\n"
                                         "floor.physics = { qp = 20 }\n[node.login]\n",
                                         "cluster.toml");
    REQUIRE(file);
    CHECK(file->limits.at({"physics", qp}) == 100);
    CHECK(file->limits.at({"physics", Resource::mr_bytes}) == std::uint64_t{2} << 30);
    CHECK(file->nodes.size() == 4);
    CHECK(file->nodes.at("n09").weight == 200);
    CHECK(file->nodes.at("n10").floors.at({"physics", qp}) == 20);
    for (const auto* wrong : {"version = 2\n", "[tenant.physics]\nqp = \"10%\"\n", "[tenant.physics]\nqpp = 1\n", "[node.\"n[3-1]\"]\n", "[node.\"a b\"]\n",
                              "[node.a]\nfloor.physics = { qp = 1 }\n", "[node.a]\nweigth = 1\n", "[node.a]\n[node.\"a\"]\n"})
        CHECK_FALSE(parse_cluster_file(wrong, "cluster.toml"));
}

TEST_CASE("the policy's key cluster") {
    const auto policy = parse_policy("version = 1\n[tenant.physics]\ncluster = [\"qp\", \"mr\"]\n", "p.toml");
    REQUIRE(policy);
    CHECK(policy->find("physics")->cluster == std::vector<Resource>{qp, Resource::mr});
    CHECK_FALSE(parse_policy("version = 1\n[tenant.physics]\ncluster = [\"qpp\"]\n", "p.toml"));
    CHECK_FALSE(parse_policy("version = 1\n[tenant.physics]\ncluster = \"qp\"\n", "p.toml"));
}
