#include "tools/common/tenants/container.hpp"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/transient.hpp"

using namespace rdmaquota;
using Catch::Contains;

namespace {

struct Proc : TemporaryDirectory {
    Proc() {
        add("self", "0::/user.slice\n");
        add("42", "0::/machine.slice/libpod-7f.scope/container\n");
        add("43", "0::/user.slice\n");
        add("44", "0::/\n");
    }
    void add(const std::string& process, const std::string& cgroup) const {
        std::filesystem::create_directory(*this / process);
        std::ofstream(*this / (process + "/cgroup")) << cgroup;
    }
};

Policy two_tenants() {
    Policy policy;
    limit(policy.tenant("blue"), 3);
    limit(policy.tenant("physics/atlas"), 3);
    policy.tenant("physics");
    return policy;
}

std::vector<Match> matches_of(const TenantNode& node, std::string_view tenant) {
    return running_policy(node.path)->find(tenant)->matches;
}

}  // namespace

TEST_CASE("a container's cgroup is that of the process in its state") {
    const Proc proc;
    const auto cgroup = container_cgroup(R"({"ociVersion":"1.0.2","id":"x","status":"created","pid":42,"bundle":"/b"})",
                                         proc.path());
    REQUIRE(cgroup);
    CHECK(*cgroup == "/machine.slice/libpod-7f.scope/container");
}

TEST_CASE("what is no container of its own is refused") {
    const Proc proc;
    for (const auto* state : {"", "{", "[42]", "{}", R"({"pid":"42"})", R"({"pid":0})", R"({"pid":-42})", R"({"pid":4.2e9})",
                              R"({"pid":99999999999})"})
        CHECK_THAT(container_cgroup(state, proc.path()).error(), Contains("no OCI state"));
    CHECK_THAT(container_cgroup(R"({"pid":43})", proc.path()).error(), Contains("is in /user.slice"));
    CHECK_THAT(container_cgroup(R"({"pid":44})", proc.path()).error(), Contains("no cgroup of its own"));
    CHECK_THAT(container_cgroup(R"({"pid":45})", proc.path()).error(), Contains("cannot be read"));
}

TEST_CASE_METHOD(TenantNode, "a container is bound to its tenant until its cgroup is gone") {
    publish(two_tenants());
    REQUIRE(bind_cgroup(path, "blue", "/no/such/cgroup"));
    const auto bound = matches_of(*this, "blue");
    REQUIRE(bound.size() == 1);
    CHECK(bound[0].bound);
    CHECK(bound[0].cgroup == "/no/such/cgroup");
    const auto policy = running_policy(path);
    CHECK(directory_mode_of(*policy->find("blue")) == 0700);
    CHECK(access_of(*policy->find("blue"), {}).mode == LedgerAccess::everyone().mode);
    CHECK(has_ended_bindings(*policy));
    drop_ended_bindings(path, std::chrono::milliseconds(100));
    CHECK(matches_of(*this, "blue").empty());
}

TEST_CASE_METHOD(TenantNode, "the last binding of a cgroup counts") {
    publish(two_tenants());
    // A cgroup that stays, whichever hierarchies are there.
    const std::string lasting = "/";
    REQUIRE(bind_cgroup(path, "default", lasting));
    REQUIRE(bind_cgroup(path, "blue", lasting));
    CHECK(matches_of(*this, "default").empty());
    CHECK(matches_of(*this, "blue").size() == 1);
}

TEST_CASE_METHOD(TenantNode, "containers are in tenants that can have processes") {
    publish(two_tenants());
    CHECK_THAT(bind_cgroup(path, "physics", "/c").error(), Contains("has tenants below it"));
    CHECK_THAT(bind_cgroup(path, "red", "/c").error(), Contains("no tenant 'red'"));
    CHECK_THAT(bind_cgroup(path, "node", "/c").error(), Contains("all tenants together"));
    CHECK_THAT(bind_cgroup(path, "blue", "/c/*").error(), Contains("characters that patterns use"));
}
