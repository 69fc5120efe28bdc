// Tenants' directories when a policy is replaced by another one.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <catch2/catch.hpp>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/transient.hpp"

using namespace rdmaquota;

namespace {

struct Republished : TenantNode {
    Policy policy;

    unsigned mode_of(std::string_view tenant) const {
        struct stat status {};
        REQUIRE(::stat(tenant_directory(path, tenant).c_str(), &status) == 0);
        return status.st_mode & 07777;
    }
    bool is_there(std::string_view tenant) const {
        return ::access(tenant_directory(path, tenant).c_str(), F_OK) == 0;
    }
    TenantPolicy job(const std::string& name) const {
        TenantPolicy tenant;
        tenant.name = name;
        tenant.matches = {by_cgroup({"0"})};
        return tenant;
    }
    static void charge(Ledger& ledger, const Owner& owner, std::uint64_t qps) {
        const Limits none[Amounts::capacity];
        REQUIRE_FALSE(ledger.charge(owner, *ledger.device_index("rxe0"), Amounts{}.add(Resource::qp, qps), none));
    }
    std::uint64_t used(std::string_view tenant) const {
        const auto tenants = read_tenants(path, tenant);
        REQUIRE(tenants);
        const auto found = std::find_if(tenants->begin(), tenants->end(),
                                        [&](const TenantReading& one) { return one.place.key == tenant; });
        REQUIRE(found != tenants->end());
        return usage_of(found->view.devices, "rxe0", Resource::qp);
    }
};

}  // namespace

TEST_CASE_METHOD(Republished, "only root enters the directory of a tenant for containers, also when it was another one") {
    auto& tenant = policy.tenant("boxes");
    tenant.matches = {by_user("1234")};
    publish(policy);
    CHECK(mode_of("boxes") == 0755);
    CHECK(admits("boxes", 1234));
    CHECK_FALSE(admits("boxes", 1235));

    tenant.matches.clear();
    publish(policy);
    CHECK(mode_of("boxes") == 0700);
    CHECK((rights("boxes").st_mode & 0777) == 0666);

    tenant.matches = {by_user("1234")};
    publish(policy);
    CHECK(mode_of("boxes") == 0755);
    CHECK_FALSE(admits("boxes", 1235));
}

TEST_CASE_METHOD(Republished, "a ledger that containers still use is closed to all others when its tenant becomes an inner one") {
    policy.tenant("boxes");
    publish(policy);
    auto ledger = open("boxes");
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    policy.tenant("boxes/one");
    publish(policy);
    CHECK(mode_of("boxes") == 0700);
    ledger.retire(*owner);
    publish(policy);
    CHECK(mode_of("boxes") == 0755);
}

TEST_CASE_METHOD(Republished, "a directory that is put anew loses rights only") {
    REQUIRE(put_limits(path, "boxes", {}, 0700));
    REQUIRE(put_limits(path, "boxes", {}, 0755));
    CHECK(mode_of("boxes") == 0700);
    REQUIRE(open_directory(path, "boxes", 0755));
    CHECK(mode_of("boxes") == 0755);
    REQUIRE(put_limits(path, "boxes", {}, 0700));
    CHECK(mode_of("boxes") == 0700);
    CHECK_THAT(open_directory(path, "missing", 0755).error(), Catch::Contains("missing: No such file"));
}

TEST_CASE_METHOD(Republished, "every lock file gets the new members") {
    policy.tenant("one").matches = {by_user("1234")};
    publish(policy);
    policy.tenant("one").matches = {by_user("4321")};
    publish(policy);
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) {
        const auto given = rights_of(lock_path(ledger_path(here_path(path, "one")), slot));
        REQUIRE(given);
        CHECK(rdmaquota::admits(*given, 4321, {}));
        CHECK_FALSE(rdmaquota::admits(*given, 1234, {}));
    }
}

TEST_CASE_METHOD(Republished, "a tenant that the policy no longer has goes when no process uses it") {
    policy.tenant("blue");
    policy.tenant("red");
    publish(policy);
    auto ledger = open("red");
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    publish({});
    CHECK_FALSE(is_there("blue"));
    CHECK(is_there("red"));
    ledger.retire(*owner);
    CHECK(remove_ended(path, {}).empty());
    CHECK_FALSE(is_there("red"));
    CHECK(is_there("default"));
}

TEST_CASE_METHOD(Republished, "the limits of the node and of everyone's processes outlive a transient tenant") {
    row_for(policy.node, "rxe0")[index(Resource::qp)] = 1000;
    row_for(policy.process, "*")[index(Resource::qp)] = 5;
    publish(policy);
    REQUIRE(add_transient(path, job("job")));
    REQUIRE(remove_transient(path, "job"));
    const auto running = running_policy(path);
    REQUIRE(running);
    REQUIRE(find_row(running->node, "rxe0"));
    CHECK(find_row(running->node, "rxe0")->at(index(Resource::qp)) == 1000);
    REQUIRE(find_row(running->process, "*"));
    CHECK(find_row(running->process, "*")->at(index(Resource::qp)) == 5);
}

TEST_CASE_METHOD(Republished, "a tenant that becomes an inner one counts its own use until it ends") {
    policy.tenant("physics");
    publish(policy);
    auto physics = open("physics");
    auto before = physics.claim(identity_of_self());
    REQUIRE(before);
    charge(physics, *before, 3);

    policy.tenant("physics/atlas");
    publish(policy);
    auto atlas = open("physics/atlas");
    auto owner = atlas.claim(identity_of_self());
    REQUIRE(owner);
    charge(atlas, *owner, 4);
    CHECK(used("physics") == 7);
    CHECK(read_tenants(path, "physics")->front().view.processes.size() == 1);
    row_for(policy.node, "rxe0")[index(Resource::qp)] = 1000;
    publish(policy);
    CHECK(used("node") == 7);

    physics.retire(*before);
    publish(policy);
    CHECK_FALSE(find_tenant(path, "physics")->has_ledger());
    CHECK(used("physics") == 4);
}

TEST_CASE_METHOD(Republished, "what is left of a used name ends, also below a template") {
    policy.tenant("slurm/{account}").matches = {{{}, {}, "/slurm/{account}", {}, {"0"}}};
    publish(policy);
    REQUIRE(make_instance_of_key(path, "slurm/atlas"));
    REQUIRE(make_instance_of_key(path, "slurm/atlas"));  // is there
    auto ledger = open("slurm/atlas");
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    REQUIRE(add_transient(path, job("slurm/atlas")));
    CHECK(is_there("slurm/atlas~1"));
    CHECK_FALSE(is_instance_of("slurm/atlas~1", "slurm/{account}"));
    CHECK(is_instance_of("slurm/cms", "slurm/{account}"));
    ledger.retire(*owner);
    (void)remove_ended(path, *running_policy(path));
    CHECK_FALSE(is_there("slurm/atlas~1"));
    CHECK_THAT(make_instance_of_key(path, "blue").error(), Catch::Contains("no template has a tenant 'blue'"));
}

TEST_CASE_METHOD(Republished, "what lies beside the tenants is found by no name") {
    row_for(policy.process, "*")[index(Resource::qp)] = 5;
    publish(policy);
    CHECK(keys() == std::vector<std::string>{"default"});
    CHECK_FALSE(find_tenant(path, everyone_key));
    CHECK_FALSE(find_tenant(path, "default+x"));
}

TEST_CASE_METHOD(Republished, "an unusable ledger is put aside, and its members keep their rights") {
    policy.tenant("one").matches = {by_user("1234")};
    publish(policy);
    const auto ledger = ledger_path(here_path(path, "one"));
    REQUIRE(::truncate(data_path(ledger).c_str(), 5) == 0);
    const auto aside = put_ledger(*find_tenant(path, "one"), access_of(policy.tenant("one"), name_lookup()));
    REQUIRE(aside);
    CHECK(std::filesystem::exists(*aside));
    CHECK(Ledger::open(ledger));
    CHECK(admits("one", 1234));
}
