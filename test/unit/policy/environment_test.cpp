#include <catch2/catch.hpp>

#include <map>

#include "policy/environment.hpp"

using namespace rdmaquota;

namespace {

std::map<std::string, std::string> variables;

Tightening read(std::map<std::string, std::string> set) {
    variables = std::move(set);
    return read_environment([](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

std::uint64_t of(const LimitRow& row, Resource resource) { return row[index(resource)]; }

}  // namespace

TEST_CASE("an empty environment tightens nothing") {
    const auto result = read({});
    CHECK(result.process == unset_row());
    CHECK(result.tenant == unset_row());
    CHECK(result.warnings.empty());
}

TEST_CASE("RDMAQUOTA_LIMIT takes settings; the smaller of two holds") {
    const auto result = read({{"RDMAQUOTA_LIMIT", "qp=2,mr_bytes=1MiB,qp=7"}, {"RDMAQUOTA_TENANT_LIMIT", "pd=3"}});
    CHECK(of(result.process, Resource::qp) == 2);
    CHECK(of(result.process, Resource::mr_bytes) == 1 << 20);
    CHECK(of(result.process, Resource::pd) == unset);
    CHECK(of(result.tenant, Resource::pd) == 3);
}

TEST_CASE("what cannot be read is ignored with a warning and the rest holds") {
    const auto result = read({{"RDMAQUOTA_LIMIT", "qps=2,cq=x,pd=1"}, {"RDMAQUOTA_LOG_LEVEL", "loud"}});
    CHECK(of(result.process, Resource::pd) == 1);
    REQUIRE(result.warnings.size() == 3);
    CHECK_THAT(result.warnings[0], Catch::StartsWith("environment variable RDMAQUOTA_LIMIT: unknown resource"));
}

TEST_CASE("the interceptor's names work when it is enabled") {
    std::map<std::string, std::string> set{
        {"RDMA_INTERCEPT_ENABLE", "1"},          {"RDMA_INTERCEPT_ENABLE_QP_CONTROL", "1"},
        {"RDMA_INTERCEPT_MAX_QP_PER_PROCESS", "2"}, {"RDMA_INTERCEPT_MAX_GLOBAL_QP", "5"},
        {"RDMA_INTERCEPT_MAX_MR_PER_PROCESS", "3"}, {"RDMA_INTERCEPT_MAX_GLOBAL_MR", "6"},
        {"RDMA_INTERCEPT_MAX_MEMORY_PER_PROCESS", "4"}, {"RDMA_INTERCEPT_MAX_GLOBAL_MEMORY", "1000"},
        {"RDMA_INTERCEPT_LOG_LEVEL", "DEBUG"},   {"RDMA_INTERCEPT_LOG_FILE_PATH", "/tmp/x.log"},
    };
    auto result = read(set);
    CHECK(of(result.process, Resource::qp) == 2);
    CHECK(of(result.tenant, Resource::qp) == 5);
    CHECK(of(result.process, Resource::mr) == 3);
    CHECK(of(result.tenant, Resource::mr) == 6);
    CHECK(of(result.process, Resource::mr_bytes) == 4 << 20);
    CHECK(of(result.tenant, Resource::mr_bytes) == 1000);
    CHECK(result.log_level == LogLevel::debug);
    CHECK(result.log_file == "/tmp/x.log");

    set.erase("RDMA_INTERCEPT_ENABLE_QP_CONTROL");
    result = read(set);
    CHECK(of(result.process, Resource::qp) == unset);
    CHECK(of(result.process, Resource::mr) == 3);

    set.insert_or_assign("RDMA_INTERCEPT_ENABLE", std::string(1, '0'));
    result = read(set);
    CHECK(result.process == unset_row());
    CHECK(result.log_file.empty());
}

TEST_CASE("absurd interceptor numbers are ignored with a warning") {
    const auto result = read({{"RDMA_INTERCEPT_ENABLE", "1"},
                              {"RDMA_INTERCEPT_MAX_MR_PER_PROCESS", "-4"},
                              {"RDMA_INTERCEPT_MAX_MEMORY_PER_PROCESS", "18446744073709551615"}});
    CHECK(result.process == unset_row());
    CHECK(result.warnings.size() == 2);
}

TEST_CASE("a limit may be for a device or a port alone") {
    const auto result = read({{"RDMAQUOTA_LIMIT", "mlx5_0/1:qp=2,mlx5_0/1:qp=3,a:b:cq=5"},
                              {"RDMAQUOTA_TENANT_LIMIT", "rxe0:pd=3,rxe0/1:pd=1,total:qp=1,x y:qp=1"}});
    CHECK(result.process == unset_row());
    REQUIRE(result.process_devices.size() == 2);
    CHECK(result.process_devices[0].device == "mlx5_0/1");
    CHECK(of(result.process_devices[0].limits, Resource::qp) == 2);
    CHECK(result.process_devices[1].device == "a:b");
    CHECK(of(result.process_devices[1].limits, Resource::cq) == 5);
    REQUIRE(result.tenant_devices.size() == 1);
    CHECK(of(result.tenant_devices[0].limits, Resource::pd) == 3);
    REQUIRE(result.warnings.size() == 3);
    CHECK_THAT(result.warnings[0], Catch::Contains("pd is no resource of a port"));
    CHECK_THAT(result.warnings[1], Catch::Contains("total"));
    CHECK_THAT(result.warnings[2], Catch::Contains("no device name"));
}

TEST_CASE("a rate in the environment is a process's only, since all of a tenant share one word") {
    const auto result = read({{"RDMAQUOTA_LIMIT", "commands_per_s=5"}, {"RDMAQUOTA_TENANT_LIMIT", "commands_per_s=3,qp=7"}});
    CHECK(result.process[index(Resource::commands_per_s)] == 5);
    CHECK(result.tenant[index(Resource::commands_per_s)] == unset);
    CHECK(result.tenant[index(Resource::qp)] == 7);
    REQUIRE(result.warnings.size() == 1);
    CHECK(result.warnings[0].find("RDMAQUOTA_LIMIT for each process") != std::string::npos);
}
