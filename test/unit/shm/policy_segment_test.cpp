#include <catch2/catch.hpp>

#include <cerrno>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

Policy sample() {
    Policy policy;
    policy.mode = Mode::audit;
    policy.on_unavailable = Unavailable::deny;
    policy.deny_errno = EAGAIN;
    policy.clamp_device_attr = true;
    policy.log_target = LogTarget::file;
    policy.log_file = "/var/log/rdmaquota";
    row_for(policy.process, "*")[index(Resource::qp)] = 100;
    row_for(policy.tenant, "*")[index(Resource::qp)] = 1000;
    row_for(policy.tenant, "rxe0")[index(Resource::mr)] = 7;
    row_for(policy.tenant, "rxe0")[index(Resource::qp)] = unlimited;
    return policy;
}

}  // namespace

TEST_CASE("a compiled policy reads as it was written") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "policy", sample()));
    const auto segment = LimitsSegment::open(directory / "policy");
    REQUIRE(segment);
    const auto& policy = segment.value();
    CHECK(policy.mode() == Mode::audit);
    CHECK(policy.on_unavailable() == Unavailable::deny);
    CHECK(policy.deny_errno() == EAGAIN);
    CHECK(policy.log_file() == "/var/log/rdmaquota");
    CHECK(policy.clamp_device_attr());
    CHECK(policy.decompile().clamp_device_attr);
    CHECK(policy.limit(Scope::process, "rxe0", Resource::qp) == 100);
    CHECK(policy.limit(Scope::tenant, "rxe0", Resource::qp) == unlimited);
    CHECK(policy.limit(Scope::tenant, "mlx5_0", Resource::qp) == 1000);
    CHECK(policy.limit(Scope::tenant, "mlx5_0/1", Resource::qp) == unlimited);  // "*" means no ports
    CHECK(policy.limit(Scope::tenant, "mlx5_0", Resource::mr) == unlimited);
    CHECK(policy.decompile().tenant.size() == 2);
}

TEST_CASE("a limit that is set is live in every mapping") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "policy", sample()));
    auto reader = LimitsSegment::open(directory / "policy");
    auto writer = LimitsWriter::open(directory / "policy");
    REQUIRE(reader);
    REQUIRE(writer);
    REQUIRE(writer->set(Scope::tenant, "rxe0", Resource::qp, 5));
    CHECK(reader->limit(Scope::tenant, "rxe0", Resource::qp) == 5);
    CHECK(reader->generation() == 2);

    REQUIRE(writer->set(Scope::tenant, "mlx5_0", Resource::qp, 6));
    CHECK(reader->limit(Scope::tenant, "mlx5_0", Resource::qp) == 6);
    CHECK(reader->limit(Scope::tenant, "mlx5_0", Resource::mr) == unlimited);
    CHECK(reader->generation() == 3);
}

TEST_CASE("a new policy supersedes the old one") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "policy", sample()));
    auto old = LimitsSegment::open(directory / "policy");
    REQUIRE(old);
    CHECK_FALSE(old->superseded());
    REQUIRE(LimitsWriter::publish(directory / "policy", Policy{}));
    CHECK(old->superseded());
    auto fresh = LimitsSegment::open(directory / "policy");
    REQUIRE(fresh);
    CHECK_FALSE(fresh->superseded());
    CHECK(fresh->limit(Scope::process, "rxe0", Resource::qp) == unlimited);
}

TEST_CASE("rows for 34 device names and no more") {
    const TemporaryDirectory directory;
    REQUIRE(LimitsWriter::publish(directory / "policy", Policy{}));
    auto segment = LimitsWriter::open(directory / "policy");
    REQUIRE(segment);
    for (int i = 0; i < 34; ++i) REQUIRE(segment->set(Scope::process, "d" + std::to_string(i), Resource::qp, 1));
    CHECK_FALSE(segment->set(Scope::process, "one more", Resource::qp, 1));
    CHECK(segment->set(Scope::process, "d33", Resource::qp, 2));
}

TEST_CASE("what is no policy is refused by name") {
    const TemporaryDirectory directory;
    const auto path = directory / "policy";
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains(path) && Catch::Contains("rdmaquota reload"));

    std::ofstream(path) << "too short";
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("9 bytes"));
    REQUIRE(LimitsWriter::publish(path, Policy{}));

    PolicyImage image = LimitsSegment::open(path).value().image();
    image.layout_version = 77;
    std::ofstream(path).write(reinterpret_cast<const char*>(&image), sizeof image);
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("layout version is 77"));
    image.magic = 0;
    std::ofstream(path).write(reinterpret_cast<const char*>(&image), sizeof image);
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("not a compiled policy"));
    CHECK_FALSE(LimitsWriter::publish(directory / "missing/policy", Policy{}));
}
