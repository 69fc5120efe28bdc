// Slurm jobs: their tenants and limits.
#include <string>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "policy/file/slurm_tables.hpp"
#include "policy/pattern.hpp"
#include "policy/slurm.hpp"
#include "test/unit/policy/policy_texts.hpp"

using namespace rdmaquota;

namespace {

const std::string version = "version = 1\n";

SlurmPolicy slurm_of(const std::string& text) {
    const auto policy = good(version + text);
    REQUIRE(policy.slurm);
    return *policy.slurm;
}

std::uint64_t qp_of(const ScopeLimits& limits, std::string_view device = any_device) {
    return value_for(limits, device, Resource::qp);
}

SlurmJob job(std::string account, std::string partition = "", std::string qos = "") {
    return {4711, 1000, std::move(account), std::move(partition), std::move(qos)};
}

const std::string tables = R"(
[slurm.job."*"]
qp = 10
cq = 7
[slurm.job.rxe0]
mr = 5
[slurm.partition.debug."*"]
qp = 20
[slurm.account.atlas."*"]
qp = 30
[slurm.account.atlas.rxe0]
qp = 31
[slurm.qos.high."*"]
qp = "max"
)";

// What apply_job_request leaves of the limits in `tables`, and says.
struct Applied {
    ScopeLimits limits;
    std::vector<std::string> remarks;
};
Applied applied(const std::string& request, const SlurmJob& of = job("")) {
    Applied result{limits_of(slurm_of(tables), of), {}};
    const auto parsed = parse_job_request(request);
    REQUIRE(parsed);
    result.remarks = apply_job_request(*parsed, result.limits);
    return result;
}

}  // namespace

TEST_CASE("a policy without [slurm] gives jobs no tenant, an empty one gives them one without limits") {
    CHECK_FALSE(good(version).slurm);
    CHECK(limits_of(slurm_of("[slurm]\n"), job("atlas")).empty());
}

TEST_CASE("QOS goes before account, partition and job") {
    const auto policy = slurm_of(tables);
    CHECK(qp_of(limits_of(policy, job("", ""))) == 10);
    CHECK(qp_of(limits_of(policy, job("other", "debug"))) == 20);
    CHECK(qp_of(limits_of(policy, job("atlas", "debug"))) == 30);
    CHECK(qp_of(limits_of(policy, job("atlas", "debug", "high"))) == unlimited);
    CHECK(qp_of(limits_of(policy, job("atlas", "debug", "high")), "rxe0") == 31);
    CHECK(value_for(limits_of(policy, job("atlas")), any_device, Resource::cq) == 7);
}

TEST_CASE("errors in [slurm] name their place") {
    CHECK_THAT(error_of(version + "[slurm.jobs.\"*\"]\nqp = 1\n"),
               Catch::Contains("jobs") && Catch::Contains("key in [slurm]"));
    CHECK_THAT(error_of(version + "[slurm.job]\nqp = 1\n"), Catch::Contains("[slurm.job.\"*\"]"));
    CHECK_THAT(error_of(version + "[slurm.account.\"a\\\"b\".\"*\"]\nqp = 1\n"), Catch::Contains("no name of Slurm's"));
    CHECK_THAT(error_of(version + "slurm = 1\n"), Catch::Contains("slurm"));
}

TEST_CASE("[slurm] is the same when it is written and read again") {
    const auto policy = slurm_of(tables);
    const auto again = parse_policy(slurm_text(policy), "again");
    REQUIRE(again);
    REQUIRE(again->slurm);
    for (const auto& each : {job(""), job("atlas", "debug"), job("atlas", "", "high")})
        for (const auto* device : {"*", "rxe0"})
            CHECK(qp_of(limits_of(*again->slurm, each), device) == qp_of(limits_of(policy, each), device));
    CHECK(slurm_text(*again->slurm) == slurm_text(policy));
}

TEST_CASE("a request lowers limits and raises none") {
    CHECK(qp_of(applied("qp=4").limits) == 4);
    CHECK(applied("qp=4").remarks.empty());
    CHECK(qp_of(applied("qp=400").limits) == 10);
    REQUIRE(applied("qp=400").remarks.size() == 1);
    CHECK(applied("qp=400").remarks[0] == "qp cannot be 400: the policy of this node gives a job 10");
    CHECK(applied("qp=max").remarks.size() == 1);
    CHECK(value_for(applied("mr_bytes=10GiB").limits, any_device, Resource::mr_bytes) == std::uint64_t{10} << 30);
}

TEST_CASE("a request for each device lowers those that the policy names") {
    const auto both = applied("qp=4", job("atlas"));
    CHECK(qp_of(both.limits, "rxe0") == 4);
    const auto above = applied("rxe0:qp=40,qp=5", job("atlas"));
    CHECK(qp_of(above.limits, "rxe0") == 5);
    REQUIRE(above.remarks.size() == 1);
    CHECK(above.remarks[0] == "qp of rxe0 cannot be 40: the policy of this node gives a job 31");
    CHECK(qp_of(applied("rxe1:qp=3").limits, "rxe1") == 3);
    CHECK(qp_of(applied("rxe1:qp=3").limits) == 10);
    CHECK(qp_of(applied("rxe1:qp=30").limits, "rxe1") == 10);
}

TEST_CASE("a request above the policy's limit lowers no device that the policy gives more") {
    const auto cut = applied("qp=400", job("atlas"));
    CHECK(qp_of(cut.limits) == 30);
    CHECK(qp_of(cut.limits, "rxe0") == 31);
    REQUIRE(cut.remarks.size() == 1);
    CHECK(cut.remarks[0] == "qp cannot be 400: the policy of this node gives a job 30");
}

TEST_CASE("what may be asked for is what the policy gives, whatever was asked for before") {
    const auto within = applied("qp=5,rxe0:qp=20", job("atlas"));
    CHECK(within.remarks.empty());
    CHECK(qp_of(within.limits) == 5);
    CHECK(qp_of(within.limits, "rxe0") == 20);
    const auto above = applied("qp=5,rxe0:qp=40", job("atlas"));
    REQUIRE(above.remarks.size() == 1);
    CHECK(above.remarks[0] == "qp of rxe0 cannot be 40: the policy of this node gives a job 31");
    CHECK(qp_of(above.limits, "rxe0") == 31);
}

TEST_CASE("a request that is wrong is refused as a whole") {
    for (const auto* text : {"", "qp", "qp=1,", "qpx=1", "qp=-1", "no device:qp=1", "qp=1 mr=2"}) {
        INFO(text);
        CHECK_FALSE(parse_job_request(text));
    }
    std::string devices = "qp=1";
    for (std::size_t i = 1; i < most_requested_devices; ++i) devices += fmt::format(",dev{}:qp=1,dev{}:cq=1", i, i);
    CHECK(parse_job_request(devices));
    CHECK_FALSE(parse_job_request(devices + ",one_more:qp=1"));
}

TEST_CASE("a job's tenant has a valid name, whatever its account") {
    CHECK(tenant_of(job("atlas")) == "slurm/atlas/job-4711");
    CHECK(tenant_of(job("")) == "slurm/none/job-4711");
    CHECK(tenant_of(job("a b/c+d")) == "slurm/a_b_c_d/job-4711");
    for (const std::string account : {".hidden", "-x", "node", "default", "/", "\xc3\xa4", "{user}", "~1"}) {
        INFO(account);
        CHECK(check_tenant_name(tenant_of(job(account))));
    }
    CHECK(check_tenant_name(tenant_of(job(std::string(1000, 'a')))));
}

TEST_CASE("a tenant is a job's by its number alone") {
    CHECK(is_tenant_of("slurm/atlas/job-4711", 4711));
    CHECK(is_tenant_of("slurm/none/job-4711", 4711));
    CHECK_FALSE(is_tenant_of("slurm/atlas/job-47110", 4711));
    CHECK_FALSE(is_tenant_of("slurm/atlas/job-14711", 4711));
    CHECK_FALSE(is_tenant_of("other/job-4711", 4711));
    CHECK_FALSE(is_tenant_of("slurm", 4711));
}

TEST_CASE("a job's cgroup is one that slurmd makes, and none that users can make") {
    const auto pattern = cgroup_of(job("atlas"));
    const auto matches = [&](const std::string& path) {
        Captures captures;
        return cgroup_matches(pattern, path, captures);
    };
    CHECK(matches("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"));
    CHECK(matches("/system.slice/node1_slurmstepd.scope/job_4711/step_batch"));
    CHECK_FALSE(matches("/system.slice/slurmstepd.scope/job_47110/step_0"));
    CHECK_FALSE(matches("/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_4711"));
    CHECK(check_cgroup_pattern(pattern));
    CHECK_FALSE(reaches_into_users(pattern));
}

TEST_CASE("a job may ask for a rate, up to that of the policy") {
    auto limits = limits_of(slurm_of("[slurm.job.\"*\"]\ncommands_per_s = 2000\n"), job(""));
    const auto request = parse_job_request("commands_per_s=1000,registered_per_s=1GiB");
    REQUIRE(request);
    CHECK(apply_job_request(*request, limits).empty());
    CHECK(value_for(limits, any_device, Resource::commands_per_s) == 1000);
    CHECK(value_for(limits, any_device, Resource::registered_per_s) == 1 << 30);
    const auto more = parse_job_request("commands_per_s=3000");
    REQUIRE(more);
    CHECK(apply_job_request(*more, limits) == std::vector<std::string>{"commands_per_s cannot be 3000: the policy of this node gives a job 1000"});
}

TEST_CASE("a job gets a percentage only below one of the policy's, and an amount only below an amount") {
    SlurmPolicy policy;
    row_for(policy.job, "*")[index(Resource::qp)] = percentage(250);
    row_for(policy.job, "*")[index(Resource::cq)] = 100;
    const auto asked = [&](const char* text) {
        auto limits = policy.job;
        const auto request = parse_job_request(text);
        REQUIRE(request);
        const auto remarks = apply_job_request(*request, limits);
        return std::pair(limits.front().limits, remarks);
    };
    CHECK(asked("qp=10%").first[index(Resource::qp)] == percentage(100));
    CHECK(asked("qp=30%").first[index(Resource::qp)] == percentage(250));
    const auto [row, remarks] = asked("qp=5,cq=1%");
    CHECK(row[index(Resource::qp)] == percentage(250));
    CHECK(row[index(Resource::cq)] == 100);
    CHECK(remarks == std::vector<std::string>{"qp cannot be 5: the policy of this node gives a job 25%",
                                              "cq cannot be 1%: the policy of this node gives a job 100"});
}
