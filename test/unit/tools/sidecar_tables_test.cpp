#include <catch2/catch.hpp>

#include "policy/file/policy_file.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/sidecar_files.hpp"

using namespace rdmaquota;

namespace {

Result<Policy> parse(const std::string& text) { return parse_policy("version = 1\n" + text, "policy.toml"); }

std::string error_of(const std::string& text) {
    const auto policy = parse(text);
    return policy ? "" : policy.error();
}

const std::string whole = R"(
[sidecar]
metrics_port = 9837

[[dynamic]]
device = "mlx5_0"
watch = "mr_bytes"
of = "100GiB"
above = 95
below = 50
limit = "qp"
scope = "process"
factor = 25
floor = 7

[[dynamic]]
watch = "mr_bytes"
of = "node"
floor = "1GiB"
)";

}  // namespace

TEST_CASE("dynamic rules are read, with their defaults") {
    const auto policy = parse(whole);
    REQUIRE(policy);
    CHECK(policy->sidecar.metrics_port == 9837);
    REQUIRE(policy->dynamic.size() == 2);
    const auto& first = policy->dynamic[0];
    CHECK(first.device == "mlx5_0");
    CHECK(first.watch == Resource::mr_bytes);
    CHECK(first.of == CapacityOf::amount);
    CHECK(first.capacity == std::uint64_t{100} << 30);
    CHECK((first.above == 95 && first.below == 50 && first.factor == 25 && first.floor == 7));
    CHECK(first.limit == Resource::qp);
    CHECK(first.scope == Scope::process);
    const auto& second = policy->dynamic[1];
    CHECK(second.device == "*");
    CHECK(second.of == CapacityOf::node);
    CHECK((second.above == 90 && second.below == 70 && second.factor == 50));
    CHECK(second.limit == Resource::mr_bytes);
    CHECK(second.scope == Scope::tenant);
    CHECK(second.floor == std::uint64_t{1} << 30);
}

TEST_CASE("wrong rules are refused with their place") {
    CHECK(error_of("[[dynamic]]\nfloor = 1\n") ==
          "policy.toml:2:1: the rule does not say what it watches; write watch = \"mr_bytes\"");
    CHECK(error_of("[[dynamic]]\nwatch = \"qp\"\n").find("the rule has no floor") != std::string::npos);
    CHECK(error_of("[[dynamic]]\nwatch = \"qps\"\nfloor = 1\n").starts_with("policy.toml:3:9: watch must be one of"));
    CHECK(error_of("[dynamic]\nwatch = \"qp\"\n").find("with two brackets") != std::string::npos);
    const std::string rule = "[[dynamic]]\nwatch = \"qp\"\nfloor = 1\n";
    CHECK(error_of(rule) == "");
    CHECK(error_of(rule + "above = 50\nbelow = 50\n").find("must be less than above") != std::string::npos);
    CHECK(error_of(rule + "factor = 100\n").find("changes nothing") != std::string::npos);
    CHECK(error_of(rule + "of = \"node\"\n").find("mr_bytes only") != std::string::npos);
    CHECK(error_of(rule + "of = 0\n").find("greater than 0") != std::string::npos);
    CHECK(error_of(rule + "device = \"total\"\n").find("a rule is a name") != std::string::npos);
    CHECK(error_of(rule + "flor = 1\n").find("did you mean 'floor'?") != std::string::npos);
    CHECK(error_of("[sidecar]\nmetrics_port = 70000\n").find("from 0 to 65535") != std::string::npos);
    CHECK(error_of("[sidecar]\nport = 1\n").find("metrics_port") != std::string::npos);
}

TEST_CASE("what the policy asks of the sidecar reaches it whole") {
    TemporaryDirectory directory;
    const auto policy = parse(whole);
    REQUIRE(policy);
    REQUIRE(write_sidecar_policy(directory.path(), *policy));
    const auto asked = read_sidecar_policy(directory.path());
    REQUIRE(asked);
    CHECK(asked->rules == policy->dynamic);
    CHECK(asked->settings == policy->sidecar);
}

TEST_CASE("without the file nothing is asked, and a broken one is told") {
    TemporaryDirectory directory;
    const auto none = read_sidecar_policy(directory.path());
    REQUIRE(none);
    CHECK(none->rules.empty());
    REQUIRE(std::system(("echo '{\"dynamic\":7}' > " + directory.path() + "/sidecar.json").c_str()) == 0);
    CHECK_FALSE(read_sidecar_policy(directory.path()));
}
