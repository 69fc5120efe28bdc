#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

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

TEST_CASE("which limit holds, and why") {
    const TemporaryDirectory directory;
    auto limits = sample();
    row_for(limits.limits[index(Scope::tenant)], "total")[index(Resource::cq)] = 50;
    REQUIRE(LimitsWriter::publish(directory / "limits", limits));
    {
        auto writer = LimitsWriter::open(directory / "limits");
        REQUIRE(writer);
        REQUIRE(writer->hold(Scope::tenant, "*", Resource::qp, 500, Reason::rule, ""));
        REQUIRE(writer->hold(Scope::tenant, "*", Resource::mr, 3, Reason::grant, ""));
        REQUIRE(writer->hold(Scope::tenant, "mlx5_0/1", Resource::qp, 4, Reason::soft, ""));
    }
    const auto opened = LimitsSegment::open(directory / "limits", LimitsSegment::Parts::all);
    REQUIRE(opened);
    const auto limit = [&](auto device, Resource r) { return opened->limit(Scope::tenant, device, r); };
    const auto reason = [&](auto device, Resource r) { return opened->reason(Scope::tenant, device, r); };
    const auto configured = [&](auto device, Resource r) { return opened->configured(Scope::tenant, device, r); };
    CHECK(limit("mlx5_0", Resource::qp) == 500);  // by "*"
    CHECK(reason("mlx5_0", Resource::qp) == Reason::rule);
    CHECK(configured("mlx5_0", Resource::qp) == 1000);
    CHECK(limit("rxe0", Resource::mr) == 7);  // its own
    CHECK(reason("rxe0", Resource::mr) == Reason::configured);
    CHECK(configured("rxe0", Resource::mr) == 7);
    CHECK(configured("mlx5_0", Resource::mr) == unlimited);
    CHECK(reason("mlx5_0", Resource::mr) == Reason::grant);
    CHECK(limit("mlx5_0/1", Resource::qp) == 4);
    CHECK(reason("mlx5_0/1", Resource::qp) == Reason::soft);
    CHECK(configured("mlx5_0/1", Resource::qp) == unlimited);
    for (const auto* device : {"mlx5_0/2", "total"}) {  // "*" does not stand for them
        CHECK(limit(device, Resource::qp) == unlimited);
        CHECK(reason(device, Resource::qp) == Reason::configured);
        CHECK(configured(device, Resource::qp) == unlimited);
    }
    CHECK(configured("total", Resource::cq) == 50);
    CHECK(opened->origin(Scope::tenant, "mlx5_0", Resource::qp) == nullptr);
    CHECK(LimitsSegment::open(directory / "limits")->origin(Scope::tenant, "*", Resource::qp) == nullptr);
}

TEST_CASE("words that this version does not know read as the strictest that it knows") {
    const TemporaryDirectory directory;
    const auto path = directory / "limits";
    REQUIRE(LimitsWriter::publish(path, sample()));
    std::ifstream in(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const auto put = [&](std::size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
    for (const auto at : {offsetof(LimitsHeader, mode), offsetof(LimitsHeader, on_unavailable),
                          offsetof(LimitsHeader, deny_errno), offsetof(LimitsHeader, log_level),
                          offsetof(LimitsHeader, log_target)})
        put(at, std::uint32_t{77});
    std::fill_n(bytes.begin() + offsetof(LimitsHeader, tenant), tenant_name_bytes, 'x');  // does not end
    put(sizeof(LimitsHeader) + offsetof(LimitsRow, reason) + index(Resource::qp), std::uint8_t{77});
    std::ofstream(path, std::ios::binary) << bytes;
    const auto limits = LimitsSegment::open(path);
    REQUIRE(limits);
    CHECK(limits->mode() == Mode::enforce);
    CHECK(limits->on_unavailable() == Unavailable::allow);
    CHECK(limits->deny_errno() == EDQUOT);
    CHECK(limits->log_level() == LogLevel::debug);
    CHECK(limits->log_target() == LogTarget::file);
    CHECK(limits->tenant() == std::string(tenant_name_bytes, 'x'));
    CHECK(limits->reason(Scope::process, "rxe0", Resource::qp) == Reason::other);
}

TEST_CASE("limits that fit into no file are refused, and what was there stays") {
    const TemporaryDirectory directory;
    const auto path = directory / "limits";
    REQUIRE(LimitsWriter::publish(path, sample()));
    auto limits = sample();
    const auto refusal = [&] { return LimitsWriter::publish(path, limits).error(); };
    SECTION("too many devices, with those of everyone") {
        for (int i = 0; i < 65; ++i) row_for(limits.for_everyone, "d" + std::to_string(i));
        REQUIRE(LimitsWriter::publish(path, limits));
        limits.tenant = "blue";
        row_for(limits.for_everyone, "d65");
        CHECK(refusal() == "too many devices in one scope of tenant blue: 67 of at most 66");
    }
    SECTION("a name that is no device's") {
        row_for(limits.limits[index(Scope::tenant)], "no/device\n");
        CHECK_THAT(refusal(), Catch::EndsWith("is no device name"));
    }
    SECTION("a long log file") {
        limits.log_file = "/" + std::string(255, 'x');
        CHECK(refusal() == "the log file's name is longer than 255 bytes");
    }
    SECTION("a long tenant") {
        limits.tenant = std::string(128, 'x');
        CHECK(refusal() == "the tenant's name is longer than 127 bytes");
    }
    CHECK(LimitsSegment::open(path)->limit(Scope::tenant, "rxe0", Resource::mr) == 7);
}

TEST_CASE("what is no file of limits is refused by name") {
    const TemporaryDirectory directory;
    const auto path = directory / "limits";
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains(path) && Catch::Contains("rdmaquota reload"));

    std::ofstream(path) << "too short";
    const auto refused = [&](const std::string& why) {
        return LimitsSegment::open(path).error() ==
               "cannot use the limits " + path + ": " + why + "; run 'rdmaquota reload' as root to write them";
    };
    CHECK(refused("it is no file of limits"));
    REQUIRE(unlink(path.c_str()) == 0);
    CHECK(refused("No such file or directory"));
    REQUIRE(symlink((directory / "elsewhere").c_str(), path.c_str()) == 0);
    CHECK(refused("Too many levels of symbolic links"));
    REQUIRE(unlink(path.c_str()) == 0);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK(refused("it is no file"));
    REQUIRE(unlink(path.c_str()) == 0);
    REQUIRE(LimitsWriter::publish(path, TenantLimits{}));

    LimitsHeader header = LimitsSegment::open(path).value().header();
    const auto write = [&] { std::ofstream(path).write(reinterpret_cast<const char*>(&header), sizeof header); };
    header.row_count = 1;
    write();
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("it has 512 bytes instead of 4160"));
    header.row_count = UINT32_MAX;
    write();
    CHECK_FALSE(LimitsSegment::open(path));
    header.layout_version = 77;
    write();
    CHECK(refused("its layout version is 77, this rdmaquota needs 5"));
    header.magic = 0;
    write();
    CHECK_THAT(LimitsSegment::open(path).error(), Catch::Contains("no file of limits"));
    CHECK_FALSE(LimitsWriter::publish(directory / "missing/limits", TenantLimits{}));
}

TEST_CASE("a file of version 0.1 has no shares, and charges wait for one as long as usual") {
    const TemporaryDirectory directory;
    const auto path = directory / "limits";
    auto limits = sample();
    limits.grant_wait_ms = 7;
    row_for(limits.guarantees, "rxe0")[index(Resource::mr)] = 3;
    REQUIRE(LimitsWriter::publish(path, limits));
    const auto rows = LimitsSegment::open(path)->header().row_count;
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        const std::string nothing(sizeof(LaterAmount) * 4, '\0');
        file.seekp(offsetof(LimitsHeader, grant_wait_plus_1)).write(nothing.data(), 4);
        for (std::size_t i = 0; i < rows * resource_slots; ++i)
            file.seekp(static_cast<std::streamoff>(limits_bytes(rows, LimitsSegment::Parts::effective) +
                                                   i * sizeof(Origin) + offsetof(Origin, granted)))
                .write(nothing.data(), static_cast<std::streamsize>(nothing.size()));
    }
    const auto old = LimitsSegment::open(path, LimitsSegment::Parts::all);
    REQUIRE(old);
    CHECK(old->grant_wait_ms() == default_grant_wait_ms);
    CHECK(old->granted("rxe0", Resource::mr) == unset);
    CHECK(old->guarantee("rxe0", Resource::mr) == 0);
    REQUIRE(LimitsWriter::publish(path, limits));
    const auto now = LimitsSegment::open(path, LimitsSegment::Parts::all);
    REQUIRE(now);
    CHECK(now->grant_wait_ms() == 7);
    CHECK(now->guarantee("rxe0", Resource::mr) == 3);
    CHECK(now->limit(Scope::tenant, "rxe0", Resource::mr) == 7);
}
