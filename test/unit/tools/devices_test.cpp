#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "test/unit/temporary_directory.hpp"
#include "tools/common/devices.hpp"

using namespace rdmaquota;

namespace {

void add(const TemporaryDirectory& directory, const std::string& identity, const std::string& name) {
    std::filesystem::create_directory(directory / identity);
    std::ofstream(directory / identity + "/ibdev") << name << "\n";
}

}  // namespace

TEST_CASE("a device and its port have the name of their uverbs device") {
    const TemporaryDirectory directory;
    add(directory, "uverbs0", "mlx5_0");
    add(directory, "uverbs10", "mlx5_10");
    const auto devices = UverbsDevices::read(directory.path());
    CHECK(devices.name("uverbs0") == "mlx5_0");
    CHECK(devices.name("uverbs0", "as it was called before") == "mlx5_0");
    CHECK(devices.name("uverbs10/2") == "mlx5_10/2");
    CHECK(devices.identities() == std::vector<std::string>{"uverbs0", "uverbs10"});
}

TEST_CASE("a device that is gone has its last name") {
    const TemporaryDirectory directory;
    const auto devices = UverbsDevices::read(directory.path());
    CHECK(devices.name("uverbs3", "mlx5_3/1") == "mlx5_3/1");
    CHECK(devices.name("uverbs3") == "uverbs3");
    CHECK(devices.name("total") == "total");
}

TEST_CASE("a device that is gone is told apart from the one that has its name now") {
    const TemporaryDirectory directory;
    add(directory, "uverbs0", "rxe0");
    const auto devices = UverbsDevices::read(directory.path());
    CHECK(devices.name("uverbs1", "rxe0") == "rxe0@uverbs1");
    CHECK(devices.name("uverbs1/2", "rxe0/2") == "rxe0@uverbs1/2");
    CHECK(devices.name("uverbs1", "rxe1") == "rxe1");
}

TEST_CASE("of two devices with one name the second is told apart") {
    const TemporaryDirectory directory;
    add(directory, "uverbs10", "rxe0");
    add(directory, "uverbs9", "rxe0");
    const auto devices = UverbsDevices::read(directory.path());
    CHECK(devices.name("uverbs9") == "rxe0");
    CHECK(devices.name("uverbs10") == "rxe0@uverbs10");
    CHECK(devices.name("uverbs10/1") == "rxe0@uverbs10/1");
}

TEST_CASE("uverbs devices are known by their numbers") {
    CHECK(uverbs_identity(7) == "uverbs7");
    CHECK(uverbs_number("uverbs7") == 7);
    CHECK(uverbs_number("rxe0") == UINT32_MAX);
}
