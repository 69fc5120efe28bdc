#include <atomic>
#include <thread>

#include <catch2/catch.hpp>

#include <unistd.h>

#include "provider/charging/limit_cache.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

struct Caching {
    TemporaryDirectory directory;
    std::string path = directory / "policy";
    LimitCache cache;
    DeviceReport report;
    LimitCache::View view{};

    void publish(Mode mode, std::uint64_t qps) {
        TenantLimits policy;
        policy.mode = mode;
        row_for(policy.limits[index(Scope::tenant)], "rxe0")[index(Resource::qp)] = qps;
        REQUIRE(LimitsWriter::publish(path, policy));
    }
    LimitsSegment open() {
        auto segment = LimitsSegment::open(path);
        REQUIRE(segment);
        return std::move(*segment);
    }
    std::uint64_t read(const LimitsSegment& policy) {
        Limits limits;
        cache.read(policy, "rxe0", report, Amounts{}.add(Resource::qp, 1), &limits);
        return limits.tenant;
    }
};

}  // namespace

TEST_CASE_METHOD(Caching, "a view of limits holds until one is changed") {
    publish(Mode::enforce, 5);
    const auto policy = open();
    CHECK_FALSE(cache.view(view));
    CHECK(read(policy) == 5);
    REQUIRE(cache.view(view));
    CHECK(view.holds());
    CHECK(cache.cell(Resource::qp).tenant == 5);
    auto writer = LimitsWriter::open(path);
    REQUIRE(writer);
    REQUIRE(writer->set(Scope::tenant, "rxe0", Resource::qp, 4));
    CHECK_FALSE(view.holds());
    CHECK(read(policy) == 4);
    REQUIRE(cache.view(view));
    CHECK(view.holds());
}

TEST_CASE_METHOD(Caching, "and until the policy is replaced, after which the old one gives no view") {
    publish(Mode::enforce, 5);
    const auto policy = open();
    read(policy);
    REQUIRE(cache.view(view));
    publish(Mode::enforce, 3);
    CHECK_FALSE(view.holds());
    CHECK(read(policy) == 5);
    CHECK_FALSE(cache.view(view));
    CHECK(read(open()) == 3);
}

TEST_CASE_METHOD(Caching, "where nothing is counted there is no view") {
    publish(Mode::off, 5);
    const auto policy = open();
    read(policy);
    CHECK_FALSE(cache.view(view));
}

TEST_CASE_METHOD(Caching, "a limit that is held, and one that is released, is in the next view") {
    publish(Mode::enforce, 5);
    const auto policy = open();
    read(policy);
    REQUIRE(cache.view(view));
    const auto change = [&](auto make) {
        auto writer = LimitsWriter::open(path);
        REQUIRE(writer);
        make(*writer);
    };
    change([](LimitsWriter& writer) { REQUIRE(writer.hold(Scope::tenant, "rxe0", Resource::qp, 2, Reason::rule, "")); });
    CHECK_FALSE(view.holds());
    CHECK(read(policy) == 2);
    REQUIRE(cache.view(view));
    change([](LimitsWriter& writer) { writer.release(Scope::tenant, "rxe0", Resource::qp); });
    CHECK_FALSE(view.holds());
    CHECK(read(policy) == 5);
}

TEST_CASE_METHOD(Caching, "a child that is forked while another thread reads the limits reads them itself") {
    publish(Mode::enforce, 5);
    const auto first = open();
    const auto other_path = directory / "other";
    REQUIRE(LimitsWriter::publish(other_path, {}));
    const auto second = LimitsSegment::open(other_path);
    REQUIRE(second);
    std::atomic<bool> stop = false;
    std::thread reader([&] {
        while (!stop) read(first), read(*second);  // neither is known after the other
    });
    int never_known = 0;
    for (int round = 0; round < 50; ++round) {
        ChildProcess child([&] {
            read(first);
            _exit(cache.view(view) ? 0 : 1);
        });
        never_known += child.wait();
    }
    stop = true;
    reader.join();
    CHECK(never_known == 0);
}
