// Templates above templates: a tenant of the upper one bounds what is below it, and comes and goes with that.
#include <catch2/catch.hpp>

#include <algorithm>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/shares/divide.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/transient.hpp"

using namespace rdmaquota;

namespace {

// Each account may have 10 QPs for all its jobs, each job 8.
struct Accounts : TenantNode {
    Policy policy;

    Accounts() {
        limit(policy.tenant("slurm/{account}"), 10);
        auto& job = policy.tenant("slurm/{account}/{job}");
        job.matches = {{{}, {}, "/slurm/{account}/job_{job}", {}, {"0"}}};
        limit(job, 8);
        publish(policy);
    }
    bool has(std::string_view key) const {
        const auto all = keys();
        return std::find(all.begin(), all.end(), key) != all.end();
    }
    void divide() const {
        const auto divided = divide_shares(path);
        INFO(divided.error());
        REQUIRE(divided);
    }
    std::uint64_t in_force(std::string_view key) const {
        const auto limits = LimitsSegment::open(limits_path(here_path(path, key)), LimitsSegment::Parts::all);
        REQUIRE(limits);
        return limits->limit(Scope::tenant, "rxe0", Resource::qp);
    }
    std::uint64_t of_jobs(std::string_view first, std::string_view second) const {
        divide();
        return in_force(first) + in_force(second);
    }
    // As `reload` keeps transient tenants.
    Policy with_jobs() const {
        auto with = policy;
        const auto running = running_policy(path);
        REQUIRE(running);
        for (const auto& tenant : running->tenants)
            if (tenant.transient) fill_limits(path, with.tenants.emplace_back(tenant));
        return with;
    }
    void add_job(const std::string& name) const {
        TenantPolicy job;
        job.name = name;
        job.matches = {by_cgroup({"0"})};
        limit(job, 8);
        const auto added = add_transient(path, job);
        INFO(added.error());
        REQUIRE(added);
    }
};

}  // namespace

TEST_CASE_METHOD(Accounts, "jobs of an account together have what it may use, and no other account's") {
    REQUIRE(make_instance_of_key(path, "slurm/atlas/1"));
    CHECK(in_force("slurm/atlas/1") == 0);  // until somebody divides
    REQUIRE(make_instance_of_key(path, "slurm/atlas/2"));
    REQUIRE(make_instance_of_key(path, "slurm/cms/1"));
    CHECK_FALSE(find_tenant(path, "slurm/atlas")->has_ledger());
    CHECK(of_jobs("slurm/atlas/1", "slurm/atlas/2") == 10);
    CHECK(in_force("slurm/cms/1") == 8);

    limit(policy.tenant("slurm/{account}"), 6);
    publish(policy);
    CHECK(of_jobs("slurm/atlas/1", "slurm/atlas/2") == 6);
    CHECK(in_force("slurm/cms/1") == 6);
}

TEST_CASE_METHOD(Accounts, "jobs of a job starter are bounded by their account, too") {
    add_job("slurm/atlas/job-1");
    add_job("slurm/atlas/job-2");
    CHECK(of_jobs("slurm/atlas/job-1", "slurm/atlas/job-2") == 10);
    limit(policy.tenant("slurm/{account}"), 6);
    publish(with_jobs());
    CHECK(of_jobs("slurm/atlas/job-1", "slurm/atlas/job-2") == 6);
}

TEST_CASE_METHOD(Accounts, "an account that was changed live stays so when another job comes") {
    add_job("slurm/atlas/job-1");
    auto writer = LimitsWriter::open(limits_path(here_path(path, "slurm/atlas")));
    REQUIRE(writer);
    const Setting four{Resource::qp, 4};
    REQUIRE(writer->set(Scope::tenant, "*", {&four, 1}));
    add_job("slurm/atlas/job-2");
    CHECK(of_jobs("slurm/atlas/job-1", "slurm/atlas/job-2") == 4);
}

TEST_CASE_METHOD(Accounts, "an account goes with its last job") {
    std::erase_if(policy.tenants, [](const TenantPolicy& tenant) { return tenant.name == "slurm/{account}/{job}"; });
    publish(policy);
    add_job("slurm/atlas/job-1");
    add_job("slurm/atlas/job-2");
    REQUIRE(remove_transient(path, "slurm/atlas/job-1"));
    CHECK(has("slurm/atlas"));
    auto ledger = open("slurm/atlas/job-2");
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    REQUIRE(remove_transient(path, "slurm/atlas/job-2"));
    CHECK(has("slurm/atlas"));  // the job is still in use
    ledger.retire(*owner);
    (void)remove_ended(path, *running_policy(path));
    CHECK_FALSE(has("slurm/atlas"));
    CHECK(has("slurm/{account}"));
}

TEST_CASE_METHOD(Accounts, "jobs that are there get an account above them when the policy has one") {
    std::erase_if(policy.tenants, [](const TenantPolicy& tenant) { return tenant.name == "slurm/{account}"; });
    publish(policy);
    REQUIRE(make_instance_of_key(path, "slurm/atlas/1"));
    REQUIRE(make_instance_of_key(path, "slurm/atlas/2"));
    CHECK(of_jobs("slurm/atlas/1", "slurm/atlas/2") == 16);
    limit(policy.tenant("slurm/{account}"), 10);
    publish(policy);
    CHECK(of_jobs("slurm/atlas/1", "slurm/atlas/2") == 10);
}

TEST_CASE_METHOD(Accounts, "jobs of a job starter that are there get an account above them, too") {
    std::erase_if(policy.tenants, [](const TenantPolicy& tenant) { return tenant.name == "slurm/{account}"; });
    publish(policy);
    add_job("slurm/atlas/job-1");
    add_job("slurm/atlas/job-2");
    CHECK(of_jobs("slurm/atlas/job-1", "slurm/atlas/job-2") == 16);
    limit(policy.tenant("slurm/{account}"), 10);
    publish(with_jobs());
    CHECK(of_jobs("slurm/atlas/job-1", "slurm/atlas/job-2") == 10);
}

TEST_CASE_METHOD(Accounts, "no process can be in an account") {
    const auto made = make_instance_of_key(path, "slurm/atlas");
    CHECK_THAT(made.error(), Catch::Contains("'slurm/atlas' has tenants below it, so no process can be in it"));
    CHECK_FALSE(has("slurm/atlas"));
    TenantPolicy account;
    account.name = "slurm/atlas";
    CHECK_THAT(add_transient(path, account).error(), Catch::Contains("has tenants below it"));
}

TEST_CASE_METHOD(Accounts, "nothing lies below a job") {
    TenantPolicy step;
    step.name = "slurm/atlas/1/step";
    CHECK_THAT(add_transient(path, step).error(), Catch::Contains("'slurm/atlas/1' cannot have tenants below it"));
}
