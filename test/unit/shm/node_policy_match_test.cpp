#include <chrono>

#include <catch2/catch.hpp>

#include "test/unit/shm/node_fixture.hpp"
#include "test/waiting.hpp"

using namespace rdmaquota;

TEST_CASE("a policy without matches puts every process into default") {
    const Node node;
    const auto policy = node.publish({});
    CHECK_FALSE(policy.asks_for_ids());
    CHECK_FALSE(policy.asks_for_cgroup());
    const auto verdict = policy.find(subject(alice, atlas, "/a"));
    CHECK(verdict.tenant == "default");
    CHECK(verdict.from == "default");
    CHECK_FALSE(verdict.match);
    CHECK_FALSE(verdict.hidden);
}

TEST_CASE("a match by user looks at the user alone") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_user("alice")}));
    CHECK(policy.asks_for_ids());
    CHECK_FALSE(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject(alice)) == "physics");
    CHECK(tenant_of(policy, subject(bob)) == "default");
    CHECK(tenant_of(policy, subject(std::nullopt)) == "default");
}

TEST_CASE("a match by group looks at the effective group and the supplementary ones") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_group("atlas")}));
    const std::array<gid_t, 2> with_atlas{7, atlas}, without{7, 8};
    CHECK(policy.asks_for_ids());
    CHECK(tenant_of(policy, {bob, users, with_atlas, ""}) == "physics");
    CHECK(tenant_of(policy, {bob, atlas, without, ""}) == "physics");
    CHECK(tenant_of(policy, {bob, users, without, ""}) == "default");
    CHECK(tenant_of(policy, {bob, std::nullopt, {}, ""}) == "default");
}

TEST_CASE("root's number is a user like others") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_user("alice"), by_group("atlas")}));
    CHECK(tenant_of(policy, subject(uid_t{0}, gid_t{0})) == "default");
}

TEST_CASE("a match by cgroup looks at the path alone") {
    const Node node;
    const auto policy = node.publish(with("slurm", {by_cgroup("/slurm/**/job_*")}));
    CHECK_FALSE(policy.asks_for_ids());
    CHECK(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/uid_1000/job_7/step_0")) == "slurm");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/x")) == "default");
}

TEST_CASE("a match by unit looks at the unit alone") {
    const Node node;
    const auto policy = node.publish(with("storage", {by_unit("ceph-*.service")}));
    CHECK_FALSE(policy.asks_for_ids());
    CHECK(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject({}, {}, "/system.slice/ceph-osd.service")) == "storage");
    CHECK(tenant_of(policy, subject({}, {}, "/system.slice/other.service/ceph-osd.service")) == "default");
}

TEST_CASE("all conditions of one match must hold") {
    const Node node;
    const auto policy = node.publish(with(
        "physics",
        {{.user = "alice", .group = "atlas", .cgroup = "/system.slice/*/run", .unit = "a.service", .members = {}}}));
    const std::string_view path = "/system.slice/a.service/run";
    CHECK(tenant_of(policy, subject(alice, atlas, path)) == "physics");
    CHECK(tenant_of(policy, subject(bob, atlas, path)) == "default");
    CHECK(tenant_of(policy, subject(alice, users, path)) == "default");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/b.service/run")) == "default");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/a.service/walk")) == "default");
}

TEST_CASE("the first match in the order of the file wins and is named") {
    const Node node;
    Policy policy;
    policy.tenant("b").matches = {by_user("bob"), by_group("atlas")};
    policy.tenant("a").matches = {by_user("alice"), by_group("atlas"), by_group("users")};
    const auto read = node.publish(policy);
    CHECK(read.find(subject(alice, atlas)).tenant == "b");
    CHECK(read.find(subject(alice, atlas)).match == 1U);
    CHECK(read.find(subject(alice, users)).tenant == "a");
    CHECK(read.find(subject(alice, users)).match == 0U);
    CHECK(read.find(subject({}, users)).match == 2U);
}

TEST_CASE("transient tenants are tried first") {
    const Node node;
    Policy policy;
    policy.tenant("user/{user}").matches = {by_group("users")};
    for (const auto* name : {"job-7", "job-8"}) {
        policy.tenant(name).transient = true;
        policy.tenant(name).matches = {by_cgroup("/slurm")};
    }
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(alice, users, "/slurm")) == "job-7");
    CHECK(tenant_of(read, subject(alice, users, "/other")) == "user/#1000");
    REQUIRE(read.decompile().tenants.size() == 4);
    CHECK(read.decompile().tenants[1].name == "user/{user}");
}

TEST_CASE("what a container is bound to is tried before all others") {
    const Node node;
    Policy policy;
    policy.tenant("job").transient = true;
    policy.tenant("job").matches = {by_cgroup("/")};
    policy.tenant("blue").matches = {by_cgroup("/libpod-1"), by_user("alice")};
    policy.tenant("blue").matches.front().bound = true;
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(alice, users, "/libpod-1/below")) == "blue");
    CHECK(tenant_of(read, subject(alice, users, "/libpod-12")) == "job");
    CHECK(read.decompile().find("blue")->matches == policy.find("blue")->matches);
    CHECK(node.publish(read.decompile()).decompile().find("blue")->matches == policy.find("blue")->matches);
}

TEST_CASE("a cgroup that is not known hides matches by it, and the verdict says so") {
    const Node node;
    Policy policy;
    policy.tenant("slurm").matches = {{.user = "alice", .group = {}, .cgroup = "/slurm", .unit = {}, .members = {}}};
    policy.tenant("storage").matches = {by_user("bob"), by_unit("*.service")};
    policy.tenant("rest").matches = {by_group("users")};
    const auto read = node.publish(policy);
    CHECK(read.find(subject(alice, users)).tenant == "rest");
    CHECK(read.find(subject(alice, users)).hidden);
    CHECK(read.find(subject(uid_t{5}, users)).hidden);   // by unit
    CHECK_FALSE(read.find(subject(bob, users)).hidden);  // decided before
    CHECK_FALSE(read.find(subject(alice, users, "/")).hidden);
    CHECK(read.find(subject(uid_t{5})).tenant == "default");
}

TEST_CASE("a template with {user} has one tenant for each user's number") {
    const Node node;
    const auto policy = node.publish(with("user/{user}/jobs", {by_cgroup("/slurm")}));
    CHECK(policy.asks_for_ids());
    const auto verdict = policy.find(subject(uid_t{1234}, {}, "/slurm"));
    CHECK(verdict.tenant == "user/#1234/jobs");
    CHECK(verdict.from == "user/{user}/jobs");
    CHECK(verdict.match == 0U);
    CHECK(tenant_of(policy, subject({}, {}, "/slurm")) == "default");
}

TEST_CASE("a template takes what its pattern captures") {
    const Node node;
    const auto policy =
        node.publish(with("slurm/{user}/{cluster}-job-{job}", {by_cgroup("/slurm_{cluster}/*/job_{job}")}));
    CHECK(tenant_of(policy, subject(alice, {}, "/slurm_a/x/job_7/step_0")) == "slurm/#1000/a-job-7");
    CHECK(tenant_of(policy, subject(alice, {}, "/slurm_a/x/job_")) == "default");
}

TEST_CASE("a template matches only where its captures make a tenant's name") {
    const Node node;
    Policy sample;
    sample.tenant("{job}").matches = {by_cgroup("/slurm/{job}")};
    sample.tenant("rest").matches = {by_cgroup("/slurm")};
    const auto policy = node.publish(sample);
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/a")) == "a");
    for (const std::string value : {"-a", ".a", "..", "a b", "a+b", "#1000", "{user}", "node", "\xc3\xa4"})
        CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + value)) == "rest");
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + std::string(tenant_name_bytes - 1, 'x'))) ==
          std::string(tenant_name_bytes - 1, 'x'));
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + std::string(tenant_name_bytes, 'x'))) == "rest");
}

TEST_CASE("the key of a template's instance is no longer than a tenant's name") {
    const Node node;
    constexpr uid_t user = 4'000'000'000;
    const std::string longest(tenant_name_bytes - 1 - std::string_view("/#4000000000").size(), 'x');
    CHECK(tenant_of(node.publish(with(longest + "/{user}", {by_group("users")})), subject(user, users)) ==
          longest + "/#4000000000");
    CHECK(tenant_of(node.publish(with(longest + "x/{user}", {by_group("users")})), subject(user, users)) == "default");
}

TEST_CASE("a template whose pattern lacks its capture matches nothing") {
    const Node node;
    CHECK(tenant_of(node.publish(with("slurm/{job}", {by_group("users")})), subject(alice, users)) == "default");
}

TEST_CASE("a match with an unknown user or group is kept and never holds") {
    const Node node;
    Policy policy;
    policy.tenant("physics").matches = {by_user("carol"), by_group("hpc")};
    policy.tenant("slurm").matches = {by_cgroup("/slurm", {"carol", "alice", "@hpc", "@users", "*"}),
                                      by_cgroup("/other", {"carol"})};
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(uid_t{0}, gid_t{0})) == "default");
    CHECK(tenant_of(read, subject({}, {}, "/slurm")) == "slurm");
    const auto unknown = read.unknown_names();
    REQUIRE(unknown.size() == 4);
    CHECK((unknown[0].tenant == "physics" && unknown[0].name == "carol"));
    CHECK((unknown[1].tenant == "physics" && unknown[1].name == "@hpc"));
    CHECK((unknown[2].tenant == "slurm" && unknown[2].name == "carol"));
    CHECK((unknown[3].tenant == "slurm" && unknown[3].name == "@hpc"));
    CHECK(read.decompile().find("physics")->matches == policy.find("physics")->matches);
}

TEST_CASE("ten thousand matches are read and tried quickly") {
    const Node node;
    Policy policy;
    for (int i = 0; i < 10000; ++i)
        policy.tenant("t" + std::to_string(i)).matches = {
            {.user = "bob", .group = {}, .cgroup = "/slurm/**/job_" + std::to_string(i), .unit = {}, .members = {}}};
    node.publish(policy);
    const auto begin = cpu_seconds();
    const auto read = NodePolicy::read(node.path);
    REQUIRE(read);
    CHECK(tenant_of(*read, subject(alice, users, "/slurm/a/b/c/job_7")) == "default");
    CHECK(cpu_seconds() - begin < 0.5);  // 1 ms is usual
    CHECK(tenant_of(*read, subject(bob, users, "/slurm/a/b/c/job_9999")) == "t9999");
}
