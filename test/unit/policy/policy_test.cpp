#include <cerrno>

#include <catch2/catch.hpp>

#include "policy/policy.hpp"

using namespace rdmaquota;

TEST_CASE("a policy finds and adds tenants") {
    Policy policy;
    REQUIRE(policy.tenants.size() == 1);
    CHECK(policy.find("default") == &policy.tenants[0]);
    CHECK(policy.find("physics") == nullptr);
    policy.tenant("physics").weight = 7;
    CHECK(policy.tenants.size() == 2);
    CHECK(policy.tenant("physics").weight == 7);
    CHECK(policy.tenants.size() == 2);
    const auto& constant = policy;
    CHECK(constant.find("physics") == &policy.tenants[1]);
}

TEST_CASE("rows of limits are found by device") {
    ScopeLimits scope;
    row_for(scope, "mlx5_0")[index(Resource::qp)] = 3;
    REQUIRE(find_row(scope, "mlx5_0") != nullptr);
    CHECK((*find_row(scope, "mlx5_0"))[index(Resource::qp)] == 3);
    CHECK(find_row(scope, "mlx5_1") == nullptr);
}

TEST_CASE("a tenant inherits from the nearest tenant above that says something") {
    Policy policy;
    policy.mode = Mode::audit;
    policy.log_level = LogLevel::debug;
    policy.deny_errno = EAGAIN;
    row_for(policy.process, "*")[index(Resource::qp)] = 9;
    auto& leaf = policy.tenant("a/b/c");
    leaf.weight = 300;
    row_for(leaf.limits[index(Scope::tenant)], "*")[index(Resource::qp)] = 3;

    auto limits = limits_of(policy, leaf);
    CHECK(limits.tenant == "a/b/c");
    CHECK(limits.mode == Mode::audit);
    CHECK(limits.deny_errno == EAGAIN);
    CHECK(limits.grace_s == default_grace_s);
    CHECK(limits.log_level == LogLevel::debug);
    CHECK(limits.weight == 300);
    CHECK((*find_row(limits.limits[index(Scope::tenant)], "*"))[index(Resource::qp)] == 3);
    CHECK((*find_row(limits.for_everyone, "*"))[index(Resource::qp)] == 9);

    auto& above = policy.tenant("a");  // a/b is not in the policy
    above.mode = Mode::off;
    above.deny_errno = ENOMEM;
    above.grace_s = 5;
    above.weight = 2;
    limits = limits_of(policy, *policy.find("a/b/c"));
    CHECK(limits.mode == Mode::off);
    CHECK(limits.deny_errno == ENOMEM);
    CHECK(limits.grace_s == 5);
    CHECK(limits.weight == 300);

    policy.tenant("a/b").grace_s = 6;
    policy.tenant("a/b/c").mode = Mode::enforce;
    limits = limits_of(policy, *policy.find("a/b/c"));
    CHECK(limits.mode == Mode::enforce);
    CHECK(limits.deny_errno == ENOMEM);
    CHECK(limits.grace_s == 6);
    CHECK(limits_of(policy, *policy.find("default")).mode == Mode::audit);
}

TEST_CASE("a tenant that is in no policy inherits, from templates too") {
    Policy policy;
    policy.tenant("slurm/{account}").mode = Mode::audit;
    policy.tenant("slurm").grace_s = 7;
    TenantPolicy job;
    job.name = "slurm/atlas/7";
    CHECK(limits_of(policy, job).mode == Mode::audit);
    CHECK(limits_of(policy, job).grace_s == 7);
    policy.tenant("slurm/atlas").mode = Mode::off;
    CHECK(limits_of(policy, job).mode == Mode::off);
}
