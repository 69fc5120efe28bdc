#include <catch2/catch.hpp>

#include <cerrno>
#include <deque>
#include <memory>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/guard/guard_rows.hpp"
#include "tools/common/tenants/limited_tenants.hpp"
#include "tools/common/tenants/transient.hpp"

using namespace rdmaquota;

namespace {

const std::vector<std::string> one_device{"rxe0"};

struct Tenants {
    TemporaryDirectory directory;
    std::deque<std::string> keys;
    std::deque<LimitsSegment> limits;
    GuardRows::Members list;
    std::unique_ptr<guard_row[]> rows = std::make_unique<guard_row[]>(guard_rows);

    void add(const std::string& key, std::uint64_t pds, Mode mode = Mode::enforce, TenantLimits wanted = {}) {
        wanted.tenant = key;
        wanted.mode = mode;
        for (const auto scope : {Scope::tenant, Scope::process}) {
            row_for(wanted.limits[index(scope)], "*")[index(Resource::pd)] = pds;
            row_for(wanted.limits[index(scope)], total_device)[index(Resource::pd)] = pds;
        }
        const auto path = directory / ("limits" + std::to_string(keys.size()));
        REQUIRE(LimitsWriter::publish(path, wanted));
        auto mapped = LimitsSegment::open(path, LimitsSegment::Parts::all);
        REQUIRE(mapped);
        keys.push_back(key);
        limits.push_back(std::move(*mapped));
        list.push_back({keys.back(), keys.back(), "", &limits.back(), true});
    }
    void remove_last() { list.pop_back(); }
    guard_row& row(const GuardRows& of, const std::string& tenant) { return rows[of.tenants().at({tenant, "rxe0"})]; }
};

}  // namespace

TEST_CASE("rows of tenants that are gone serve others, however many come and go") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("job", 3);
    for (u32 i = 0; i < guard_rows / 4; ++i) {
        tenants.list.back().key = tenants.list.back().name = tenants.keys.emplace_back("job" + std::to_string(i));
        rows.update(tenants.list, one_device);
        REQUIRE(rows.without() == 0);
        tenants.keys.pop_front();
    }
    CHECK(tenants.row(rows, tenants.keys.back()).limit[kind_pd] == 3);
}

TEST_CASE("a row stays while something counts in it, or a process is held to its limits") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("job", 3);
    rows.update(tenants.list, one_device);
    const auto stamp = rows.stamp("job", "rxe0");
    REQUIRE(stamp);
    const auto tenant = stamp->rows[0], process = stamp->process_class;
    const auto total = tenants.rows[process].total;
    auto& holder = tenants.rows[7];
    holder.process = 1;
    holder.process_class = process;
    holder.total = total;
    tenants.remove_last();
    rows.update(tenants.list, one_device);
    CHECK(rows.meaning(process) != nullptr);
    CHECK(rows.meaning(total) != nullptr);
    CHECK(rows.meaning(tenant) != nullptr);
    holder.process = 0;
    tenants.rows[tenant].used[kind_pd] = 1;
    rows.update(tenants.list, one_device);
    CHECK(rows.meaning(process) == nullptr);
    CHECK(rows.meaning(tenants.rows[tenant].total) != nullptr);
    CHECK(rows.meaning(tenant) != nullptr);
    tenants.rows[tenant].used[kind_pd] = 0;
    rows.update(tenants.list, one_device);
    CHECK(rows.meaning(tenant) == nullptr);
    rows.update(tenants.list, one_device);
    CHECK(rows.meaning(total) == nullptr);
}

TEST_CASE("how a tenant is refused is forgotten when the tenant ends, also while something counts in its rows") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("daemons", 3, Mode::off);
    rows.update(tenants.list, one_device);
    const auto stamp = rows.stamp("daemons", "rxe0");
    REQUIRE(stamp);
    REQUIRE(stamp->exempt == 1);
    tenants.rows[stamp->rows[0]].used[kind_pd] = 1;
    tenants.remove_last();
    rows.update(tenants.list, one_device);
    REQUIRE(rows.stamp("daemons", "rxe0"));
    CHECK(rows.stamp("daemons", "rxe0")->exempt == 0);
}

TEST_CASE("a row that is another's now has nothing of the one before") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("physics", 3);  // with a limit of the sum over devices
    rows.update(tenants.list, one_device);
    rows.update(tenants.list, {});
    rows.update(tenants.list, one_device);
    const auto& node = tenants.row(rows, std::string(node_tenant));
    CHECK(node.total == 0);
    CHECK(node.enforced == 0);
    CHECK(node.limit[kind_pd] == guard_no_limit);
}

TEST_CASE("what a tenant that is gone still has on one device is not added to another tenant's") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    const std::vector<std::string> devices{"rxe0", "rxe1"};
    tenants.add("job", 3);
    rows.update(tenants.list, devices);
    const auto first = rows.stamp("job", "rxe0")->rows[0];
    tenants.rows[first].used[kind_pd] = 1;
    tenants.remove_last();
    rows.update(tenants.list, devices);
    CHECK(rows.meaning(first) != nullptr);
    CHECK(tenants.rows[first].next == first);
}

TEST_CASE("who only follows changes limits, and adds no row") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames(), GuardRows::May::follow);
    tenants.add("job", 3);
    rows.update(tenants.list, one_device);
    CHECK(rows.tenants().empty());
    CHECK(rows.without() == 0);
}

TEST_CASE("a tenant whose mode is off is never refused, one in audit by what is above it") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("daemons", 3, Mode::off);
    tenants.add("trial", 3, Mode::audit);
    rows.update(tenants.list, one_device);
    CHECK(rows.stamp("daemons", "rxe0")->exempt == 1);
    CHECK(rows.stamp("trial", "rxe0")->exempt == 0);
    CHECK(tenants.row(rows, "daemons").limit[kind_pd] == guard_no_limit);
}

TEST_CASE("an enforced limit is exceeded by who has some of what is too much, on one device or on all") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("job", 3);
    tenants.add("trial", 3, Mode::audit);
    rows.update(tenants.list, {"rxe0", "rxe1"});
    const auto own = rows.stamp("job", "rxe0")->rows[0], elsewhere = rows.stamp("job", "rxe1")->rows[0];
    const auto audited = rows.stamp("trial", "rxe0")->rows[0];
    GuardAmounts pds{}, cqs{};
    pds[kind_pd] = cqs[kind_cq] = 1;
    tenants.rows[own].used[kind_pd] = tenants.rows[audited].used[kind_pd] = 3;
    CHECK_FALSE(rows.is_exceeded(own, pds));
    tenants.rows[elsewhere].used[kind_pd] = 1;
    CHECK(rows.is_exceeded(own, pds));
    tenants.rows[elsewhere].used[kind_pd] = 0;
    tenants.rows[own].used[kind_pd] = tenants.rows[audited].used[kind_pd] = 4;
    CHECK(rows.is_exceeded(own, pds));
    CHECK_FALSE(rows.is_exceeded(own, cqs));
    CHECK_FALSE(rows.is_exceeded(audited, pds));
}

TEST_CASE("what a process has on other devices counts where its limit is for the sum") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("job", 3);
    rows.update(tenants.list, {"rxe0", "rxe1"});
    const auto process = rows.stamp("job", "rxe0")->process_class;
    const auto enter = [&](u32 number, u64 since) -> guard_row& {
        auto& row = tenants.rows[number] = tenants.rows[process];
        row.process = number;
        row.process_class = process;
        row.pid = 7;
        row.since = since;
        return row;
    };
    GuardAmounts pds{};
    pds[kind_pd] = 2;
    enter(10, 1).used[kind_pd] = 2;
    enter(11, 2).used[kind_pd] = 2;  // an earlier process of the same pid
    CHECK_FALSE(rows.is_exceeded(10, pds));
    enter(12, 1).used[kind_pd] = 2;
    CHECK(rows.is_exceeded(10, pds));
    CHECK_FALSE(rows.is_exceeded(11, pds));
}

TEST_CASE("a figure that is below zero for a moment exceeds nothing") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    tenants.add("job", 3);
    rows.update(tenants.list, one_device);
    const auto own = rows.tenants().at({"job", "rxe0"});
    GuardAmounts pds{};
    pds[kind_pd] = 1;
    tenants.rows[own].used[kind_pd] = static_cast<u64>(-2);
    CHECK_FALSE(rows.is_exceeded(own, pds));
}

TEST_CASE("all levels that a tenant may have are in its stamp, the node last") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    constexpr u32 levels = 10;  // check_tenant_name allows no more
    std::string key = "1";
    for (u32 level = 1; level <= levels; ++level, key += "/" + std::to_string(level)) tenants.add(key, 3);
    rows.update(tenants.list, one_device);
    const auto stamp = rows.stamp(tenants.keys.back(), "rxe0");
    REQUIRE(stamp);
    CHECK(stamp->count == levels + 1);
    CHECK(rows.meaning(stamp->rows[stamp->count - 1])->tenant == node_tenant);
}

TEST_CASE_METHOD(TenantNode, "a tenant of a template above another one has its row and its limit in the guard") {
    Policy policy;
    limit(policy.tenant("slurm/{account}"), 10);
    auto& job = policy.tenant("slurm/{account}/{job}");
    job.matches = {{{}, {}, "/slurm/{account}/job_{job}", {}, {"0"}}};
    limit(job, 8);
    publish(policy);
    REQUIRE(make_instance_of_key(path, "slurm/atlas/1"));
    const auto rows = std::make_unique<guard_row[]>(guard_rows);
    GuardRows guard(rows.get(), GuardNames());
    CHECK(guard.update(LimitedTenants(path).list(), {"rxe0"}));
    const auto stamp = guard.stamp("slurm/atlas/1", "rxe0");
    REQUIRE(stamp);
    REQUIRE(stamp->count == 3);  // the job, its account, the node
    CHECK(guard.meaning(stamp->rows[1])->tenant == "slurm/atlas");
    CHECK(guard.row(stamp->rows[0]).limit[kind_qp] == 8);
    CHECK(guard.row(stamp->rows[1]).limit[kind_qp] == 10);
}

TEST_CASE("a row has its rates, with the time by which they may be exceeded") {
    Tenants tenants;
    GuardRows rows(tenants.rows.get(), GuardNames());
    rows.update(tenants.list, one_device);
    CHECK(tenants.rows[0].paced == 0);
    TenantLimits wanted;
    auto& limits = row_for(wanted.limits[index(Scope::tenant)], "*");
    limits[index(Resource::commands_per_s)] = 100;
    limits[index(Resource::registered_per_s)] = 1;
    auto& bursts = row_for(wanted.softs, "*");
    bursts[index(Resource::commands_per_s)] = 20;
    bursts[index(Resource::registered_per_s)] = 4096;
    tenants.add("job", 3, Mode::enforce, wanted);
    rows.update(tenants.list, one_device);
    const auto* pace = tenants.row(rows, "job").pace;
    CHECK(tenants.rows[0].paced == 1);
    CHECK(pace[0].unit == 10'000'000ULL << guard_pace_shift);
    CHECK(pace[0].limit_ns == 1'200'000'000);  // a second more than the burst
    CHECK(pace[1].unit == 0);                  // too long a burst
}
