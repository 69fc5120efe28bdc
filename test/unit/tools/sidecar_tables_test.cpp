#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "shm/policy/node_policy.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

Result<Policy> parse(const std::string& text) { return parse_policy("version = 1\n" + text, "policy.toml"); }

std::string error_of(const std::string& text) {
    const auto policy = parse(text);
    return policy ? "" : policy.error();
}

Result<void> publish(const std::string& path, const Policy& policy) {
    const auto lock = PolicyLock::take(path);
    REQUIRE(lock);
    const auto nobody = [](const std::string&) { return std::optional<uid_t>(); };
    return publish_node_policy(*lock, path, policy, {nobody, nobody});
}

const std::string whole = R"(
[sidecar]
guard = "watch"
metrics_port = 9837
metrics_address = "::"
metrics_certificate = "/etc/m.crt"
metrics_key = "/etc/m.key"
metrics_token = "/etc/m.token"
metrics_client_ca = "/etc/ca.crt"
metrics_labels = ["pod", "job"]
web_port = 9838
web = "all"

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
    const MetricsAccess metrics{"::", "/etc/m.crt", "/etc/m.key", "/etc/m.token", "/etc/ca.crt", true, true};
    CHECK(policy->sidecar.metrics == metrics);
    CHECK(policy->sidecar.guard == GuardMode::watch);
    CHECK(policy->sidecar.web_port == 9838);
    CHECK(policy->sidecar.web == WebAccess::all);
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
    CHECK(error_of("[sidecar]\nguard = \"on\"\n").find(R"("off", "watch" or "deny")") != std::string::npos);
    CHECK(error_of("[sidecar]\nguard = true\n").find(R"("off", "watch" or "deny")") != std::string::npos);
    CHECK(error_of("[sidecar]\nweb = \"root\"\n").find(R"("token" or "all")") != std::string::npos);
    CHECK(error_of("[sidecar]\nweb_port = 1\nmetrics_port = 1\n").find("must differ") != std::string::npos);
    CHECK(error_of("[sidecar]\nport = 1\n").find("metrics_port") != std::string::npos);
}

TEST_CASE("metrics for other machines need TLS, and a token or certificates of clients") {
    const std::string tls = "metrics_certificate = \"/c\"\nmetrics_key = \"/k\"\n", token = "metrics_token = \"/t\"\n";
    for (const auto* loopback : {"127.0.0.1", "127.1.2.3", "::1"})
        CHECK(error_of(fmt::format("[sidecar]\nmetrics_address = \"{}\"\n", loopback)) == "");
    for (const auto* address : {"0.0.0.0", "::", "10.0.0.5", "::ffff:127.0.0.1"}) {
        const auto at = fmt::format("[sidecar]\nmetrics_address = \"{}\"\n", address);
        const auto refused = fmt::format("policy.toml:2:1: metrics_address = \"{}\" is reached from other machines, which needs "
                                         "metrics_certificate and metrics_key, and metrics_token or metrics_client_ca", address);
        CHECK(error_of(at) == refused);
        CHECK(error_of(at + tls) == refused);
        CHECK(error_of(at + tls + token) == "");
        CHECK(error_of(at + tls + "metrics_client_ca = \"/a\"\n") == "");
    }
    CHECK(error_of("[sidecar]\n" + token).find("need TLS") != std::string::npos);
    CHECK(error_of("[sidecar]\nmetrics_key = \"/k\"\n").find("name both") != std::string::npos);
    CHECK(error_of("[sidecar]\nmetrics_key = \"k\"\n").find("absolute path") != std::string::npos);
    CHECK(error_of("[sidecar]\nmetrics_address = \"localhost\"\n").find("IPv4 or IPv6 address") != std::string::npos);
    CHECK(error_of("[sidecar]\nmetrics_labels = [\"user\"]\n").find(R"(a list of "pod" and "job")") != std::string::npos);
}

TEST_CASE("the compiled policy has all of the sidecar's part") {
    TemporaryDirectory directory;
    const auto policy = parse(whole + "[tenant.default]\nbackstop = \"/slurm\"\n");
    REQUIRE(policy);
    REQUIRE(publish(directory / "policy", *policy));
    const auto compiled = NodePolicy::read(directory / "policy");
    REQUIRE(compiled);
    CHECK(compiled->decompile().dynamic == policy->dynamic);
    CHECK(compiled->decompile().sidecar == policy->sidecar);
}

TEST_CASE("more rules than there is room for are refused") {
    const std::string rule = "[[dynamic]]\nwatch = \"qp\"\nfloor = 1\n";
    std::string rules;
    for (std::size_t i = 0; i < most_dynamic_rules; ++i) rules += rule;
    CHECK(error_of(rules) == "");
    CHECK(error_of(rules + rule) == "policy.toml:194:1: more than 64 dynamic rules; remove some");
    TemporaryDirectory directory;
    Policy policy;
    policy.dynamic.resize(most_dynamic_rules + 1);
    CHECK(publish(directory / "policy", policy).error() == "65 dynamic rules; at most 64 are possible");
    policy.dynamic.clear();
    policy.sidecar.backstop = "/" + std::string(255, 'x');
    CHECK(publish(directory / "policy", policy).error() == "the backstop's path is longer than 255 bytes");
}
