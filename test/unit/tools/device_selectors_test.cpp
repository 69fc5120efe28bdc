#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/limits/device_selectors.hpp"

using namespace rdmaquota;

namespace {

void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text << "\n";
}

// A sysfs with two devices: one on PCI, which was renamed, and one of software on a netdev.
struct Sysfs {
    TemporaryDirectory directory;
    Sysfs() {
        const auto at = [this](const std::string& path) { return directory / path; };
        write(at("class/infiniband_verbs/uverbs0/ibdev"), "rocep59s0");
        write(at("devices/0000:3b:00.0/net/ens1f0/mtu"), "9000");
        std::filesystem::create_directory_symlink(at("devices/0000:3b:00.0"), at("class/infiniband_verbs/uverbs0/device"));
        write(at("class/infiniband/rocep59s0/node_guid"), "b8ce:f603:00a2:b3c4");
        write(at("class/infiniband_verbs/uverbs7/ibdev"), "rxe0");
        write(at("class/infiniband/rxe0/node_guid"), "0250:f6ff:fe00:0001");
        write(at("class/infiniband/rxe0/parent"), "eth0");
        write(at("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0"), "bond0");
    }
    std::string selected(const std::string& selector) const {
        const auto device = select_device(selector, directory.path());
        return device ? device->name + " " + std::to_string(device->uverbs) : "none";
    }
};

}  // namespace

TEST_CASE("a device is selected by PCI address, GUID and netdev") {
    const Sysfs sysfs;
    CHECK(sysfs.selected("pci:0000:3b:00.0") == "rocep59s0 0");
    CHECK(sysfs.selected("guid:B8CE:F603:00A2:B3C4") == "rocep59s0 0");
    CHECK(sysfs.selected("guid:0250f6fffe000001") == "rxe0 7");
    CHECK(sysfs.selected("netdev:ens1f0") == "rocep59s0 0");
    CHECK(sysfs.selected("netdev:eth0") == "rxe0 7");
    CHECK(sysfs.selected("netdev:bond0/1") == "rxe0/1 7");
    CHECK(sysfs.selected("pci:0000:3b:00.1") == "none");
    CHECK(sysfs.selected("netdev:eth1") == "none");
}

TEST_CASE("a selector's limits hold for the device that it selects, by number also after a rename") {
    const TemporaryDirectory directory;
    TenantLimits wanted;
    auto& rows = wanted.limits[index(Scope::tenant)];
    row_for(rows, "*")[index(Resource::qp)] = 9;
    row_for(rows, "pci:0000:3b:00.0")[index(Resource::qp)] = 2;
    row_for(rows, "pci:0000:3b:00.0/1")[index(Resource::qp)] = 1;
    const std::vector<BoundDevice> before{{"pci:0000:3b:00.0", "mlx5_0", 3}, {"pci:0000:3b:00.0/1", "mlx5_0/1", 3}};
    const std::vector<BoundDevice> after{{"pci:0000:3b:00.0", "rocep59s0", 3}, {"pci:0000:3b:00.0/1", "rocep59s0/1", 3}};
    wanted.bound = before;
    REQUIRE(LimitsWriter::publish(directory / "limits", wanted));
    const auto limits = LimitsSegment::open(directory / "limits");
    REQUIRE(limits);
    const auto qps = [&](DeviceKey device) { return limits->limit(Scope::tenant, device, Resource::qp); };
    CHECK(qps("mlx5_0") == 2);
    CHECK(qps("mlx5_0/1") == 1);
    CHECK(qps("rocep59s0") == 9);
    CHECK(qps({"as it was called when it was opened", 3}) == 2);
    CHECK(qps({"mlx5_0", 4}) == 9);
    CHECK(limits->devices(Scope::tenant) == std::vector<std::string>{"*", "mlx5_0", "mlx5_0/1"});
    auto writer = LimitsWriter::open(directory / "limits");
    REQUIRE(writer);
    const auto generation = limits->generation();
    writer->bind(before);
    CHECK(limits->generation() == generation);
    writer->bind(after);
    CHECK(limits->generation() != generation);
    CHECK(qps("mlx5_0") == 9);
    CHECK(qps("rocep59s0") == 2);
    CHECK(qps({"mlx5_0", 3}) == 2);
    CHECK(qps({"mlx5_0/1", 3}) == 1);
    writer->bind({});
    CHECK(qps({"mlx5_0", 3}) == 9);
}

TEST_CASE("the second of two devices with one name is found by a selector, too") {
    const TemporaryDirectory directory;
    TenantLimits wanted;
    row_for(wanted.limits[index(Scope::tenant)], "netdev:eth0")[index(Resource::qp)] = 2;
    wanted.bound = {{"netdev:eth0", "rxe0@uverbs1", 1}};
    REQUIRE(LimitsWriter::publish(directory / "limits", wanted));
    const auto limits = LimitsSegment::open(directory / "limits", LimitsSegment::Parts::all);
    REQUIRE(limits);
    CHECK(limits->limit(Scope::tenant, "rxe0@uverbs1", Resource::qp) == 2);
    CHECK(limits->limit(Scope::tenant, "rxe0", Resource::qp) == unlimited);
    CHECK(configured_limits(*limits)[index(Scope::tenant)].front().device == "rxe0@uverbs1");
}

TEST_CASE("what is set by name is set in the selector's row") {
    const TemporaryDirectory directory;
    TenantLimits wanted;
    row_for(wanted.limits[index(Scope::tenant)], "netdev:ens1f0")[index(Resource::mr)] = 5;
    wanted.bound = {{"netdev:ens1f0", "mlx5_0", 0}};
    REQUIRE(LimitsWriter::publish(directory / "limits", wanted));
    auto writer = LimitsWriter::open(directory / "limits");
    REQUIRE(writer);
    REQUIRE(writer->set(Scope::tenant, "mlx5_0", Resource::qp, 3));
    CHECK(writer->limits().limit(Scope::tenant, "mlx5_0", Resource::mr) == 5);
    CHECK(writer->limits().limit(Scope::tenant, "mlx5_0", Resource::qp) == 3);
}

TEST_CASE("tables that are about one device become one") {
    // Without RDMA nothing is selected, so that only tables with the same text are about one device; see the suite `renames`.
    TenantLimits limits;
    auto& rows = limits.limits[index(Scope::tenant)];
    row_for(rows, "netdev:eth0")[index(Resource::qp)] = 1;
    row_for(rows, "mlx5_0")[index(Resource::qp)] = 2;
    bind_devices(limits);
    CHECK(rows.size() == 2);
    CHECK(limits.bound.empty());
}
