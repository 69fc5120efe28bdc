#include <catch2/catch.hpp>

#include <cerrno>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

TenantLimits sample() {
    TenantLimits policy;
    policy.mode = Mode::audit;
    policy.on_unavailable = Unavailable::deny;
    policy.deny_errno = EAGAIN;
    policy.clamp_device_attr = true;
    policy.log_target = LogTarget::file;
    policy.log_file = "/var/log/rdmaquota";
    row_for(policy.limits[index(Scope::process)], "*")[index(Resource::qp)] = 100;
    row_for(policy.limits[index(Scope::tenant)], "*")[index(Resource::qp)] = 1000;
    row_for(policy.limits[index(Scope::tenant)], "rxe0")[index(Resource::mr)] = 7;
    row_for(policy.limits[index(Scope::tenant)], "rxe0")[index(Resource::qp)] = unlimited;
    return policy;
}

}  // namespace

TEST_CASE("limits read as they were written") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "limits", sample()));
    const auto segment = LimitsSegment::open(directory / "limits");
    REQUIRE(segment);
    const auto& policy = segment.value();
    CHECK(policy.mode() == Mode::audit);
    CHECK(policy.on_unavailable() == Unavailable::deny);
    CHECK(policy.deny_errno() == EAGAIN);
    CHECK(policy.log_file() == "/var/log/rdmaquota");
    CHECK(policy.clamp_device_attr());
    CHECK(policy.limit(Scope::process, "rxe0", Resource::qp) == 100);
    CHECK(policy.limit(Scope::tenant, "rxe0", Resource::qp) == unlimited);
    CHECK(policy.limit(Scope::tenant, "mlx5_0", Resource::qp) == 1000);
    CHECK(policy.limit(Scope::tenant, "mlx5_0/1", Resource::qp) == unlimited);  // "*" means no ports
    CHECK(policy.limit(Scope::tenant, "mlx5_0", Resource::mr) == unlimited);
    CHECK(policy.devices(Scope::tenant) == std::vector<std::string>{"*", "rxe0"});
    CHECK(policy.tenant() == "default");
}

TEST_CASE("a limit that is set is live in every mapping") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "limits", sample()));
    auto reader = LimitsSegment::open(directory / "limits");
    auto writer = LimitsWriter::open(directory / "limits");
    REQUIRE(reader);
    REQUIRE(writer);
    REQUIRE(writer->set(Scope::tenant, "rxe0", Resource::qp, 5));
    CHECK(reader->limit(Scope::tenant, "rxe0", Resource::qp) == 5);
    CHECK(reader->generation() == 2);

    // A device without a row needs another file, which the reader is told of.
    REQUIRE(writer->set(Scope::tenant, "mlx5_0", Resource::qp, 6));
    CHECK(reader->superseded());
    CHECK(reader->generation() == LimitsSegment::lost_generation);
    reader = LimitsSegment::open(directory / "limits");
    REQUIRE(reader);
    CHECK(reader->limit(Scope::tenant, "mlx5_0", Resource::qp) == 6);
    CHECK(reader->limit(Scope::tenant, "mlx5_0", Resource::mr) == unlimited);
    CHECK(reader->limit(Scope::tenant, "rxe0", Resource::qp) == 5);
}

TEST_CASE("a new file supersedes the old one") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "limits", sample()));
    auto old = LimitsSegment::open(directory / "limits");
    REQUIRE(old);
    CHECK_FALSE(old->superseded());
    REQUIRE(LimitsWriter::publish(directory / "limits", TenantLimits{}));
    CHECK(old->superseded());
    auto fresh = LimitsSegment::open(directory / "limits");
    REQUIRE(fresh);
    CHECK_FALSE(fresh->superseded());
    CHECK(fresh->limit(Scope::process, "rxe0", Resource::qp) == unlimited);
}

TEST_CASE("rows for 66 device names of a scope and no more") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "limits", TenantLimits{}));
    auto segment = LimitsWriter::open(directory / "limits");
    REQUIRE(segment);
    for (int i = 0; i < 66; ++i) REQUIRE(segment->set(Scope::process, "d" + std::to_string(i), Resource::qp, 1));
    CHECK_FALSE(segment->set(Scope::process, "one more", Resource::qp, 1));
    CHECK(segment->set(Scope::process, "d65", Resource::qp, 2));
}

TEST_CASE("what is no file of limits is refused by name") {
    const TemporaryDirectory directory;
    const auto path = directory / "limits";
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains(path) && Catch::Contains("rdmaquota reload"));

    std::ofstream(path) << "too short";
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("no file of limits"));
    REQUIRE(LimitsWriter::publish(path, TenantLimits{}));

    LimitsHeader header = LimitsSegment::open(path).value().header();
    const auto write = [&] { std::ofstream(path).write(reinterpret_cast<const char*>(&header), sizeof header); };
    header.row_count = 1;
    write();
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("it has 512 bytes instead of 4096"));
    header.row_count = UINT32_MAX;
    write();
    CHECK_FALSE(LimitsSegment::open(path));
    header.layout_version = 77;
    write();
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("layout version is 77"));
    header.magic = 0;
    write();
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("no file of limits"));
    CHECK_FALSE(LimitsWriter::publish(directory / "missing/limits", TenantLimits{}));
}
