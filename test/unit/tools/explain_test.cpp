// What `explain` says of each event that denied something, and which events are whose.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/explain/cause.hpp"
#include "tools/rdmaquota/explain/device_figures.hpp"
#include "tools/rdmaquota/explain/event_process.hpp"

using namespace rdmaquota;
using Catch::Contains;
using Catch::EndsWith;

namespace {

constexpr auto device = "no_such_device";
constexpr std::uint32_t gone = 0x7ffffffe;  // beyond any pid

struct Explained : TenantNode {
    Explained() {
        Policy policy;
        limit(policy.tenant("physics"), 10);
        row_for(policy.tenant("physics/atlas").limits[index(Scope::tenant)], "*")[index(Resource::commands_per_s)] = 2000;
        publish(policy);
    }
    // Of a process of "physics/atlas" that has 4 QPs of 4 and asks for one more.
    Json event(const char* kind) const {
        return Json{{"kind", kind},      {"tenant", "physics/atlas"},
                    {"device", device},  {"resource", "qp"},
                    {"scope", "tenant"}, {"reason", nullptr},
                    {"used", 4U},        {"limit", 4U},
                    {"requested", 1U},   {"count", 3U},
                    {"pid", gone},       {"pid_namespace", nullptr},
                    {"comm", "a.out"},   {"error", nullptr}};
    }
    Cause cause(const Json& event) const {
        const auto causes = causes_of(event, path);
        REQUIRE(causes.size() == 1);
        return causes.front();
    }
    Cause denied(Reason reason, const char* kind = "denied") const {
        auto json = event(kind);
        if (reason != Reason::configured) json["reason"] = name(reason);
        return cause(json);
    }
    Cause refused(const char* error, const char* resource = "qp") const {
        auto json = event("refused_by_device");
        json["error"] = error;
        json["resource"] = resource;
        json["used"] = std::uint64_t{4096};
        return cause(json);
    }
};

}  // namespace

TEST_CASE_METHOD(Explained, "a denial is explained by the reason of its limit") {
    const auto quota = denied(Reason::configured);
    CHECK(quota.kind == "quota");
    CHECK_THAT(quota.text, Contains("qp on no_such_device: tenant physics/atlas used 4 of 4, 1 more asked by pid") &&
                               EndsWith("(a.out), 3 times"));
    CHECK_THAT(quota.helps, EndsWith("set physics/atlas no_such_device qp=5"));

    const auto share = denied(Reason::grant);
    CHECK(share.kind == "share");
    CHECK_THAT(share.helps,
               Contains("its share of what physics may use") && Contains("set physics no_such_device qp=11"));

    const auto soft = denied(Reason::soft);
    CHECK(soft.kind == "soft limit");
    CHECK_THAT(soft.helps, Contains("longer than the grace period") && EndsWith("qp=5 --soft"));

}

TEST_CASE_METHOD(Explained, "what a rate delays is slow, not refused, and what it denies is told apart") {
    auto json = event("delayed");
    json["resource"] = "commands_per_s";
    json["limit"] = 2000U;
    json["used"] = std::uint64_t{3'250'000'000};
    json["count"] = 412U;
    json["first_time"] = "2026-01-31T10:15:00.000000000Z";
    const auto slow = cause(json);
    CHECK(slow.kind == "slow, not refused");
    CHECK_THAT(slow.text, Contains("commands_per_s on no_such_device: tenant physics/atlas may have 2000 a second; 412 calls of pid") &&
                              Contains("(a.out) were delayed by 3.2 s in all since 2026-01-3"));
    CHECK_THAT(slow.helps, EndsWith("set physics/atlas no_such_device commands_per_s=4000"));
    json["limit"] = 5U;
    CHECK(cause(json).helps == "the limit is 2000 by now");

    json["kind"] = "denied";
    json["reason"] = name(Reason::grant);
    const auto denied = cause(json);
    CHECK(denied.kind == "share");
    CHECK_THAT(denied.text, Contains("may have 5 a second, and pid") && Contains("would have waited longer than max_delay for 1, 412 times"));
    CHECK_THAT(denied.helps, Contains("its share of what the tenants above may use") && !Contains("more than its share"));
    json["reason"] = nullptr;
    CHECK(cause(json).kind == "rate");
}

TEST_CASE_METHOD(Explained, "a denial by a dynamic rule names the rule") {
    {
        auto writer = LimitsWriter::open(limits_path(here_path(path, "physics/atlas")));
        REQUIRE(writer);
        REQUIRE(
            writer->hold(Scope::tenant, "*", Resource::qp, 4, Reason::rule, "[[dynamic]] rule 2: qp at 95 % of 100"));
    }
    const auto rule = denied(Reason::rule);
    CHECK(rule.kind == "dynamic rule");
    CHECK_THAT(rule.helps, Contains("[[dynamic]] rule 2: qp at 95 % of 100"));
}

TEST_CASE_METHOD(Explained, "what was not denied, or not proved, is told apart") {
    CHECK_THAT(denied(Reason::configured, "would_deny").text, Contains("would have been denied; it used 4 of 4"));
    CHECK_THAT(denied(Reason::configured, "unproved").text, EndsWith("the ledger was too busy to prove it"));
    CHECK(causes_of(event("reaped"), path).empty());
    auto unknown = event("denied");
    unknown["resource"] = "of another version";
    CHECK(causes_of(unknown, path).empty());
}

TEST_CASE_METHOD(Explained, "the guard and the rdma cgroup have the sidecar's words") {
    for (const auto* kind : {"refused", "exceeded", "killed"}) {
        const auto guard = cause(Json{{"kind", kind}, {"source", "sidecar"}, {"text", "qp on rxe0\x1b"}});
        CHECK(guard.kind == "guard");
        CHECK_THAT(guard.text, Contains("the kernel's guard: qp on rxe0") && !Contains("\x1b"));
        CHECK_THAT(guard.helps, Contains("rdmaquota guard"));
    }
    const auto cgroup = cause(Json{{"kind", "backstop_denied"}, {"source", "sidecar"}, {"text", "cgroup /a"}});
    CHECK(cgroup.kind == "rdma cgroup");
    CHECK_THAT(cgroup.helps, Contains("rdma.max"));
    CHECK(causes_of(Json{{"kind", "frozen"}, {"source", "sidecar"}, {"text", ""}}, path).empty());
}

TEST_CASE_METHOD(Explained, "what the device refused is explained by its errno") {
    const auto again = refused("EAGAIN");
    CHECK(again.kind == "device");
    CHECK_THAT(again.text, Contains("the call itself failed (EAGAIN)"));
    CHECK_THAT(again.helps, Contains("rdma.max") && Contains("UARs"));

    const auto full = refused("ENOSPC");
    CHECK(full.kind == "device");
    CHECK_THAT(full.helps, Contains("firmware"));

    const auto memory = refused("ENOMEM");
    CHECK(memory.kind == "kernel");
    CHECK_THAT(memory.helps, Contains("dmesg"));

    const auto pinned = refused("ENOMEM", "mr_bytes");
    CHECK(pinned.kind == "memory lock");
    CHECK_THAT(pinned.text, EndsWith("its RLIMIT_MEMLOCK is not known, as the process has ended"));
    CHECK_THAT(pinned.helps, Contains("LimitMEMLOCK="));
}

TEST_CASE_METHOD(Explained, "an ENOMEM is explained by what bounded the process") {
    const auto told = [&](const char* resource, Json bounds) {
        Json all{{"can_map", true}, {"pinned", 0U}, {"pinned_limit", nullptr}, {"address_space", 0U},
                 {"address_space_limit", nullptr}, {"memory_cgroup", 0U}, {"memory_cgroup_limit", nullptr}};
        all.update(bounds);
        auto json = event("refused_by_device");
        json["error"] = "ENOMEM";
        json["resource"] = resource;
        json["requested"] = 1U;
        json["process_bounds"] = all;
        return cause(json);
    };
    constexpr std::uint64_t mib = 1 << 20;
    CHECK(told("mr_bytes", Json::object()).kind == "kernel");
    const auto pinned = told("qp", {{"pinned", 7 * mib}, {"pinned_limit", 8 * mib - 1}});
    CHECK(pinned.kind == "memory lock");
    CHECK_THAT(pinned.text, Contains("it had pinned 7 MiB of 8.0 MiB"));
    CHECK(told("qp", {{"pinned", 7 * mib}, {"pinned_limit", 80 * mib}}).kind == "kernel");
    CHECK(told("qp", {{"address_space", 99 * mib}, {"address_space_limit", 100 * mib - 1}}).kind == "address space");
    const auto mappings = told("qp", {{"can_map", false}});
    CHECK(mappings.kind == "mappings");
    CHECK_THAT(mappings.helps, Contains("vm.max_map_count"));
    CHECK(told("qp", {{"can_map", false}, {"address_space", 9 * mib}, {"address_space_limit", 9 * mib}}).kind == "address space");
    CHECK(told("qp", {{"memory_cgroup", 9 * mib}, {"memory_cgroup_limit", 9 * mib}}).kind == "memory cgroup");
}

TEST_CASE_METHOD(Explained, "the bound of another process is not told of a container's pid") {
    auto json = event("refused_by_device");
    json["error"] = "ENOMEM";
    json["resource"] = "mr_bytes";
    json["pid"] = static_cast<std::uint32_t>(::getpid());
    json["pid_namespace"] = 1U;  // no pid namespace has this number
    CHECK_THAT(cause(json).text, EndsWith("its RLIMIT_MEMLOCK is not known, as the process is in a container"));
}

TEST_CASE_METHOD(Explained, "what the ledgers have in use is told beside what the device refused") {
    auto ledger = open("physics/atlas");
    auto owner = ledger.claim(identity_of_self());
    REQUIRE(owner);
    const auto number = ledger.device_index(device);
    REQUIRE(number);
    const Limits bounds{};
    REQUIRE_FALSE(ledger.charge(*owner, *number, Amounts{}.add(Resource::qp, 3), &bounds));
    CHECK_THAT(refused("ENOMEM").text, Contains("; 3 in use on this node now; none of that is full"));
    ledger.retire(*owner);
}

TEST_CASE("the sidecar's answer has what is in use, and what the device turned out to have") {
    const auto status = Json::parse(R"({"usage":{"mlx5_0":{"qp":130763}},
                                        "capacity":[{"device":"mlx5_0","resource":"cq","told":9,"found":5},
                                                    {"device":"mlx5_0","resource":"qp","told":262144,"found":130763}]})");
    DeviceFigures figures{262144, 100, 0};
    add_status(status, "mlx5_0", Resource::qp, figures);
    CHECK(figures.words(Resource::qp) ==
          "; the device tells of 262144 at most; 130763 in use on this node now; it has "
          "refused more than 130763 before");
    DeviceFigures other{};
    add_status(status, "mlx5_1", Resource::qp, other);
    CHECK(other.words(Resource::qp).empty());
    add_status(Json::parse(R"({"usage":[],"capacity":3})"), "mlx5_0", Resource::qp, figures);
    CHECK(figures.found == 130763);
}

TEST_CASE("an event is of a process by its pid, in a container by the pid there and the namespace") {
    const TemporaryDirectory proc;
    const auto add = [&](const char* pid, const char* in_namespaces) {
        std::filesystem::create_directories(proc / pid + "/ns");
        std::ofstream(proc / pid + "/ns/pid").close();
        std::ofstream(proc / pid + "/status") << "Name:\ta\nNSpid:\t" << in_namespaces << "\nVmPin:\t0 kB\n";
    };
    add("300", "300\t1");
    add("301", "301");
    struct stat status {};
    REQUIRE(::stat((proc / "300/ns/pid").c_str(), &status) == 0);
    const auto event = [](std::uint32_t pid, std::uint64_t pid_namespace) {
        return Json{{"pid", pid}, {"pid_namespace", pid_namespace}};
    };
    const EventProcess contained(300, proc.path()), plain(301, proc.path()), ended(302, proc.path());
    CHECK(contained.is_of(event(1, status.st_ino)));
    CHECK_FALSE(contained.is_of(event(300, status.st_ino)));
    CHECK_FALSE(contained.is_of(event(1, 7)));
    CHECK(plain.is_of(event(301, 7)));
    CHECK(ended.is_of(event(302, 7)));
    CHECK_FALSE(ended.is_of(Json{{"pid", nullptr}}));
}
