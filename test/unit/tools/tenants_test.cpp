// Tenants' directories: made, given to their members, read, added and removed.
#include <catch2/catch.hpp>

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/limits/change_limits.hpp"
#include "tools/common/tenants/match_text.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/limits/reload.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/transient.hpp"

using namespace rdmaquota;

namespace {

Policy sample() {
    Policy policy;
    limit(policy.tenant("default"), 10);
    limit(policy.tenant("physics"), 100, "rxe0");
    limit(policy.tenant("physics/atlas"), 20);
    limit(policy.tenant("physics/cms"), 30);
    row_for(policy.node, "rxe0")[index(Resource::qp)] = 1000;
    row_for(policy.process, "*")[index(Resource::qp)] = 5;
    return policy;
}

}  // namespace

TEST_CASE_METHOD(TenantNode, "each tenant has limits, and those with processes a ledger") {
    publish(sample());
    CHECK(keys() == std::vector<std::string>{"default", "node", "physics", "physics/atlas", "physics/cms"});
    for (const auto& place : tenant_places(path))
        CHECK(place.has_ledger() == (place.key != "node" && place.key != "physics"));
    CHECK(find_tenant(path, "")->key == "default");
    CHECK_THAT(find_tenant(path, "blue").error(), Catch::Contains("no tenant 'blue'; there are default, node"));
    CHECK_FALSE(find_tenant(path, "../default"));
    CHECK_FALSE(is_own_directory(path));
    const auto own = here_path(path, "physics/atlas");
    CHECK(is_own_directory(own));
    CHECK(find_tenant(own, "")->here == own);
    CHECK(find_tenant(own, "physics/atlas"));
    CHECK_FALSE(find_tenant(own, "default"));
}

TEST_CASE_METHOD(TenantNode, "a ledger is its members'") {
    Policy policy;
    policy.tenant("one").matches = {by_user("1234")};
    policy.tenant("root").matches = {by_cgroup({})};
    policy.tenant("group").matches = {by_cgroup({"@77"})};
    policy.tenant("several").matches = {by_user("1234"), by_cgroup({"55", "@77"})};
    policy.tenant("all").matches = {by_cgroup({"*"})};
    policy.tenant("boxes");
    publish(policy);
    // No user owns a ledger.
    CHECK(rights("one").st_uid == 0);
    CHECK(admits("one", 1234));
    CHECK_FALSE(admits("one", 1235));
    CHECK(rights("root").st_uid == 0);
    CHECK((rights("root").st_mode & 0777) == 0600);
    CHECK(rights("group").st_gid == ::getegid());
    CHECK(rights_of(data_path(ledger_path(here_path(path, "group"))))->acl.size() == 4 + 8 * 5);
    CHECK(rights("several").st_uid == 0);
    CHECK(rights_of(data_path(ledger_path(here_path(path, "several"))))->acl.size() == 4 + 8 * 7);
    CHECK((rights("all").st_mode & 0777) == 0666);
    CHECK((rights("default").st_mode & 0777) == 0666);
    CHECK((rights("boxes").st_mode & 0777) == 0666);
    struct stat boxes {};
    REQUIRE(::stat(tenant_directory(path, "boxes").c_str(), &boxes) == 0);
    CHECK((boxes.st_mode & 0777) == 0700);

    policy.tenant("one").matches = {by_user("4321")};
    policy.tenant("several").matches = {by_cgroup({})};
    publish(policy);
    CHECK(admits("one", 4321));
    CHECK_FALSE(admits("one", 1234));
    CHECK((rights("several").st_mode & 0777) == 0600);
    CHECK(rights_of(data_path(ledger_path(here_path(path, "several"))))->acl.empty());
}

TEST_CASE_METHOD(TenantNode, "an inner tenant and the node use the sum of those below them") {
    publish(sample());
    auto atlas = open("physics/atlas"), cms = open("physics/cms");
    const auto first = atlas.claim(identity_of_self()), second = cms.claim(identity_of_self());
    REQUIRE((first && second));
    const Limits none[1];
    REQUIRE_FALSE(atlas.charge(*first, *atlas.device_index("rxe0"), Amounts{}.add(Resource::qp, 3), none));
    REQUIRE_FALSE(cms.charge(*second, *cms.device_index("rxe0"), Amounts{}.add(Resource::qp, 4), none));
    const auto tenants = read_tenants(path);
    REQUIRE(tenants);
    const auto used = [&](std::string_view name) {
        const auto found = std::find_if(tenants->begin(), tenants->end(),
                                        [&](const TenantReading& one) { return one.view.name == name; });
        REQUIRE(found != tenants->end());
        return usage_of(found->view.devices, "rxe0", Resource::qp);
    };
    CHECK(used("physics/atlas") == 3);
    CHECK(used("physics") == 7);
    CHECK(used("node") == 7);
    CHECK(used("default") == 0);
    CHECK(read_tenants(path, "physics")->size() == 3);
    CHECK(read_tenants(path, "physics/cms")->size() == 1);
}

TEST_CASE_METHOD(TenantNode, "limits are set for a tenant, a template's tenants, or everyone's processes") {
    auto policy = sample();
    auto& from = policy.tenant("user/{user}");
    from.matches = {by_user("1234")};
    limit(from, 6);
    policy.node.clear();
    publish(policy);
    const auto of = [&](std::string_view tenant, Scope scope) {
        return LimitsSegment::open(limits_path(here_path(path, tenant)))->limit(scope, "rxe0", Resource::qp);
    };
    const auto user = instance_of_user("user/{user}", 1234);
    CHECK(user == "user/#1234");
    CHECK(of(user, Scope::tenant) == 6);
    CHECK(of(user, Scope::process) == 5);
    const auto done = set_limits(path, {{{"user/{user}", Scope::tenant, "*", Resource::qp}, 7}});
    REQUIRE(done);
    CHECK(done->front().before == 6);
    CHECK(done->front().after == 7);
    CHECK(of(user, Scope::tenant) == 7);
    REQUIRE(set_limits(path, {{{"", Scope::process, "*", Resource::qp}, 2}}));
    for (const auto& tenant : {std::string("default"), std::string("physics/atlas"), user})
        CHECK(of(tenant, Scope::process) == 2);
    CHECK(of("default", Scope::tenant) == 10);
    TenantPolicy later;
    later.name = "later";
    REQUIRE(add_transient(path, later));
    CHECK(of("later", Scope::process) == 2);
    REQUIRE(unset_limits(path, {{"", Scope::process, "*", Resource::qp}}));
    CHECK(of(user, Scope::process) == 5);
}

TEST_CASE_METHOD(TenantNode, "a transient tenant comes and goes") {
    publish(sample());
    TenantPolicy job;
    job.name = "slurm/job-1";
    job.matches = {by_cgroup({"0"})};
    limit(job, 3);
    REQUIRE(add_transient(path, job));
    CHECK_THAT(add_transient(path, job).error(), Catch::Contains("already; remove it first"));
    CHECK(find_tenant(path, "node"));
    const auto policy = NodePolicy::read(node_policy_path(path));
    CHECK(policy->find({{}, {}, {}, "/jobs/1"}).tenant == "slurm/job-1");

    publish(sample());  // as a reload does, which keeps it by itself
    CHECK_FALSE(find_tenant(path, "slurm/job-1"));
    CHECK_THAT(remove_transient(path, "slurm/job-1").error(), Catch::Contains("no tenant"));
    REQUIRE(add_transient(path, job));
    CHECK(*remove_transient(path, "slurm/job-1"));
    CHECK_FALSE(find_tenant(path, "slurm/job-1"));
    CHECK_THAT(remove_transient(path, "physics").error(), Catch::Contains("comes from the policy file"));
}

TEST_CASE_METHOD(TenantNode, "a name that is used again begins with an empty ledger, while the old one lives") {
    publish(sample());
    TenantPolicy job;
    job.name = "job";
    REQUIRE(add_transient(path, job));
    auto ledger = open("job");
    const auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    CHECK_FALSE(*remove_transient(path, "job"));
    REQUIRE(add_transient(path, job));
    CHECK(open("job").owners().empty());
    CHECK(find_tenant(path, "job~1"));
}

TEST_CASE_METHOD(TenantNode, "wrong transient tenants are refused") {
    publish(sample());
    const auto refusal = [&](const std::string& name, std::vector<Match> matches = {}) {
        TenantPolicy tenant;
        tenant.name = name;
        tenant.matches = std::move(matches);
        return add_transient(path, tenant).error();
    };
    auto with_processes = sample();
    with_processes.tenant("blue").matches = {by_user("0")};
    publish(with_processes);
    CHECK_THAT(refusal("blue/red"), Catch::Contains("'blue' cannot have tenants below it: processes are in it"));
    CHECK_THAT(refusal("physics"), Catch::Contains("from the policy file"));
    CHECK_THAT(refusal("x", {by_user("no such user")}), Catch::Contains("there is no user 'no such user'"));
    CHECK_THAT(refusal("x", {by_cgroup({"@nogroup-here"})}), Catch::Contains("there is no group 'nogroup-here'"));
    CHECK_FALSE(add_transient(here_path(path), {}));
}

TEST_CASE("matches in words") {
    CHECK(match_words(by_user("alice")) == "user alice");
    CHECK(match_words({"", "hpc", "/slurm/**", "", {}}) == "group hpc and cgroup /slurm/**");
    CHECK(match_words({"", "", "", "gpu.service", {"*"}}) == "unit gpu.service");
    CHECK(match_words(Policy{}, {"default", "default", std::nullopt, false}) == "no match holds");
    Policy policy;
    policy.tenant("blue").matches = {by_user("alice"), by_cgroup({})};
    policy.tenant("user/{user}").matches = {{"", "users", "", "", {}}};
    CHECK(match_words(policy, {"blue", "blue", 1, false}) == "match 2 of tenant blue, cgroup /jobs");
    CHECK(match_words(policy, {"user/#7", "user/{user}", 0, false}) == "match 1 of template user/{user}, group users");
}
