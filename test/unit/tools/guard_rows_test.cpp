#include <catch2/catch.hpp>

#include <memory>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/transient.hpp"
#include "tools/rdmaquotad/guard/guard_rows.hpp"

using namespace rdmaquota;

TEST_CASE_METHOD(TenantNode, "a tenant of a template above another one has its row and its limit in the guard") {
    Policy policy;
    limit(policy.tenant("slurm/{account}"), 10);
    auto& job = policy.tenant("slurm/{account}/{job}");
    job.matches = {{{}, {}, "/slurm/{account}/job_{job}", {}, {"0"}}};
    limit(job, 8);
    publish(policy);
    REQUIRE(make_instance_of_key(path, "slurm/atlas/1"));
    Node node(path);
    node.refresh();
    const auto rows = std::make_unique<guard_row[]>(guard_rows);
    GuardRows guard(rows.get());
    CHECK(guard.update(node, {"rxe0"}));
    const auto stamp = guard.stamp("slurm/atlas/1", "rxe0");
    REQUIRE(stamp);
    REQUIRE(stamp->count == 3);  // the job, its account, the node
    CHECK(guard.meaning(stamp->rows[1])->tenant == "slurm/atlas");
    CHECK(guard.row(stamp->rows[0]).limit[kind_qp] == 8);
    CHECK(guard.row(stamp->rows[1]).limit[kind_qp] == 10);
}
