// The tenants of Slurm jobs.
#include <filesystem>

#include <catch2/catch.hpp>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/shares/share_mover.hpp"
#include "tools/common/slurm_jobs.hpp"

using namespace rdmaquota;
namespace fs = std::filesystem;

namespace {

const SlurmJob job{4711, 0, "atlas", "", ""};

Policy bounded() {
    Policy policy;
    row_for(policy.node, "*")[index(Resource::qp)] = 100;
    return policy;
}

}  // namespace

TEST_CASE_METHOD(TenantNode, "a job's tenant is there from its begin to its end") {
    publish(bounded());
    REQUIRE(begin_job(path, job, {}));
    CHECK(find_tenant(path, "slurm/atlas/job-4711"));
    REQUIRE(end_job(path, job.id));
    CHECK_FALSE(find_tenant(path, "slurm/atlas/job-4711"));
}

TEST_CASE_METHOD(TenantNode, "a job whose share cannot be divided leaves no tenant behind") {
    publish(bounded());
    fs::create_directories(shares_path(path) + ".lock/in the way");
    CHECK_FALSE(begin_job(path, job, {}));
    CHECK_FALSE(find_tenant(path, "slurm/atlas/job-4711"));
}

TEST_CASE("a job ends well where no policy is in force") {
    const TemporaryDirectory directory;
    CHECK(end_job(directory.path(), job.id));
}
