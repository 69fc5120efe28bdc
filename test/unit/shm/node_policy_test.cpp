#include <array>
#include <cerrno>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "shm/layout_version.hpp"
#include "shm/policy/node_image.hpp"
#include "test/unit/shm/node_fixture.hpp"

using namespace rdmaquota;

namespace {

Policy sample() {
    Policy policy;
    policy.mode = Mode::audit;
    policy.on_unavailable = Unavailable::deny;
    policy.deny_errno = EAGAIN;
    policy.clamp_device_attr = true;
    policy.log_level = LogLevel::debug;
    policy.log_target = LogTarget::file;
    policy.log_file = "/var/log/rdmaquota";
    policy.sidecar.metrics_port = 9100;
    policy.sidecar.guard = GuardMode::deny;
    policy.sidecar.backstop = "/slurm";
    policy.dynamic.resize(2);
    policy.dynamic[1].tenant = "physics/atlas";
    policy.dynamic[1].limit = Resource::qp;
    policy.tenant("physics").weight = 200;
    auto& tenant = policy.tenant("physics/atlas");
    tenant.mode = Mode::off;
    tenant.deny_errno = ENOMEM;
    tenant.grace_s = 0;
    tenant.matches = {by_group("atlas"), by_cgroup("/slurm/**/job_*", {"alice", "@users", "carol", "@hpc", "*"})};
    policy.tenant("user/{user}").matches = {by_group("users"), by_unit("*.service")};
    auto& transient = policy.tenant("slurm/job-7");
    transient.transient = true;
    transient.matches = {by_cgroup("/slurm/job_7", {"alice"})};
    return policy;
}

void check_same(const TenantPolicy& read, const TenantPolicy& written) {
    CHECK(read.name == written.name);
    CHECK(read.mode == written.mode);
    CHECK(read.deny_errno == written.deny_errno);
    CHECK(read.grace_s == written.grace_s);
    CHECK(read.weight == written.weight.value_or(default_weight));
    CHECK(read.transient == written.transient);
    CHECK(read.matches == written.matches);
}

// Whatever the file holds, it is refused with one line, or everything that it says can be used.
void use(const std::string& path) {
    const auto policy = NodePolicy::read(path);
    if (!policy) {
        REQUIRE(policy.error().find('\n') == std::string::npos);
        return;
    }
    const std::array<gid_t, 2> groups{atlas, users};
    for (const std::string_view cgroup : {"", "/", "/slurm/a/job_7/step_0", "/system.slice/a.service"}) {
        const auto verdict = policy->find({alice, atlas, groups, cgroup});
        REQUIRE(verdict.tenant.size() < tenant_name_bytes);
        REQUIRE(verdict.tenant.find("..") == std::string::npos);
    }
    policy->unknown_names();
    for (const auto& tenant : policy->decompile().tenants)
        REQUIRE((check_tenant_name(tenant.name) || check_template_name(tenant.name)));
}

}  // namespace

TEST_CASE("the node policy's layout is version 5") {
    CHECK(layout_version == 5);
    CHECK(node_policy_magic == 0x31444f4e51414d52ULL);
    CHECK(offsetof(NodeHeader, layout_version) == 8);
    CHECK(offsetof(NodeHeader, file_bytes) == 12);
    CHECK(offsetof(NodeHeader, id) == 16);
    CHECK(offsetof(NodeHeader, tenant_count) == 24);
    CHECK(offsetof(NodeHeader, flags) == 36);
    CHECK(offsetof(NodeHeader, log_target) == 60);
    CHECK(offsetof(NodeHeader, log_file) == 64);
    CHECK(sizeof(NodeHeader) == 104);
    CHECK(offsetof(CompiledTenant, flags) == 8);
    CHECK(offsetof(CompiledTenant, grace_s) == 24);
    CHECK(sizeof(CompiledTenant) == 32);
    CHECK(offsetof(CompiledMatch, user) == 4);
    CHECK(offsetof(CompiledMatch, entry) == 16);
    CHECK(offsetof(CompiledMatch, cgroup) == 24);
    CHECK(offsetof(CompiledMatch, members) == 56);
    CHECK(sizeof(CompiledMatch) == 64);
    CHECK(offsetof(CompiledRule, tenant) == 128);
    CHECK(sizeof(CompiledSidecar) == 264 + 64 * 256);
}

TEST_CASE("a node policy reads as it was published") {
    const Node node;
    const auto written = sample();
    const auto read = node.publish(written).decompile();
    CHECK(read.mode == Mode::audit);
    CHECK(read.on_unavailable == Unavailable::deny);
    CHECK(read.deny_errno == EAGAIN);
    CHECK(read.clamp_device_attr);
    CHECK(read.log_level == LogLevel::debug);
    CHECK(read.log_target == LogTarget::file);
    CHECK(read.log_file == "/var/log/rdmaquota");
    CHECK(read.sidecar == written.sidecar);
    CHECK(read.dynamic == written.dynamic);
    REQUIRE(read.tenants.size() == written.tenants.size());
    for (std::size_t i = 0; i < read.tenants.size(); ++i) check_same(read.tenants[i], written.tenants[i]);
}

TEST_CASE("the node's settings are read alone as well") {
    const Node node;
    const auto settings = node.publish(sample()).settings();
    CHECK(settings.mode == Mode::audit);
    CHECK(settings.log_file == "/var/log/rdmaquota");
    CHECK(node.publish({}).settings().deny_errno == EDQUOT);
    CHECK(node.publish({}).settings().log_level == LogLevel::warning);
}

TEST_CASE("names are asked for once") {
    const Node node;
    Policy policy;
    for (int i = 0; i < 100; ++i) policy.tenant("t" + std::to_string(i)).matches = {by_user("alice")};
    const auto lock = PolicyLock::take(node.path);
    REQUIRE(lock);
    int asked = 0;
    const NameLookup counting{[&](const std::string&) { return ++asked, std::optional(alice); }, {}};
    REQUIRE(publish_node_policy(*lock, node.path, policy, counting));
    CHECK(asked == 1);
}

TEST_CASE("a published policy is a file that all can read and nobody else can write") {
    const Node node;
    const auto before = umask(077);
    const auto first = node.publish({}).id();
    umask(before);
    struct stat status {};
    REQUIRE(stat(node.path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0644);
    CHECK(access((node.path + ".tmp").c_str(), F_OK) != 0);
    CHECK(node.publish({}).id() != first);
}

TEST_CASE("what cannot be published leaves the old policy in force") {
    const Node node;
    const auto id = node.publish(sample()).id();
    auto policy = sample();
    policy.tenants.push_back({});
    policy.tenants.back().name = "../etc";
    CHECK_FALSE(node.try_publish(policy));
    policy.tenants.back().name = "a";
    policy.tenants.back().matches = {by_cgroup("/a", {std::string("a\0b", 3)})};
    CHECK_FALSE(node.try_publish(policy));
    policy.tenants.back().matches = {by_cgroup("slurm")};
    CHECK_FALSE(node.try_publish(policy));
    policy.tenants.back().matches = {by_unit("a/b.service")};
    CHECK_FALSE(node.try_publish(policy));
    policy.tenants.back().matches = {by_cgroup("/a", {std::string(largest_node_policy, 'x')})};
    CHECK_THAT(node.try_publish(policy).error(), Catch::Contains("the policy is too large: 6 tenants with 6 matches"));
    policy = sample();
    policy.dynamic[0].tenant = std::string(tenant_name_bytes, 'x');
    CHECK_FALSE(node.try_publish(policy));
    CHECK(NodePolicy::read(node.path)->id() == id);
}

TEST_CASE("a policy that cannot be written says so") {
    const Node node;
    mkdir((node.path + ".tmp").c_str(), 0700);
    const auto published = node.try_publish({});
    REQUIRE_FALSE(published);
    CHECK_THAT(published.error(), Catch::Contains("cannot write " + node.path + ".tmp"));
}

TEST_CASE("a file that is no node policy is refused") {
    const Node node;
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("No such file") && Catch::Contains("reload"));
    node.write("");
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("it has 0 bytes"));
    node.write(std::string(1000, 'x'));
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("it is not a compiled policy"));
    REQUIRE(truncate(node.path.c_str(), (64 << 20) + 1) == 0);
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("it has 67108865 bytes"));
    unlink(node.path.c_str());
    REQUIRE(mkfifo(node.path.c_str(), 0600) == 0);
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("it is not a regular file"));
}

TEST_CASE("a link to a node policy is not followed") {
    const Node node;
    node.publish({});
    REQUIRE(symlink(node.path.c_str(), (node.path + "-link").c_str()) == 0);
    CHECK_FALSE(NodePolicy::read(node.path + "-link"));
}

TEST_CASE("a node policy of another layout version is refused") {
    const Node node;
    node.publish(sample());
    auto bytes = node.bytes();
    bytes[offsetof(NodeHeader, layout_version)] = 9;
    node.write(bytes);
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("its layout version is 9, this rdmaquota needs 5"));
}

TEST_CASE("a node policy whose records point elsewhere is refused") {
    const Node node;
    node.publish(sample());
    const auto whole = node.bytes();
    const auto tenant = sizeof(NodeHeader), match = tenant + sample().tenants.size() * sizeof(CompiledTenant);
    for (const auto at :
         {offsetof(NodeHeader, file_bytes), offsetof(NodeHeader, tenant_count), offsetof(NodeHeader, match_count),
          offsetof(NodeHeader, text_bytes), offsetof(NodeHeader, log_file), tenant + offsetof(CompiledTenant, name),
          tenant + offsetof(CompiledTenant, name) + 4, match + offsetof(CompiledMatch, tenant),
          match + offsetof(CompiledMatch, cgroup), match + offsetof(CompiledMatch, unit) + 4,
          match + offsetof(CompiledMatch, user_name), match + offsetof(CompiledMatch, group_name),
          match + offsetof(CompiledMatch, members) + 4}) {
        INFO("at " << at);
        auto bytes = whole;
        bytes.replace(at, 4, "\xff\xff\xff\xff");
        node.write(bytes);
        const auto read = NodePolicy::read(node.path);
        REQUIRE_FALSE(read);
        CHECK_THAT(read.error(), Catch::Contains("it is damaged"));
    }
}

TEST_CASE("a node policy with a pattern that takes long is refused") {
    const Node node;
    node.publish(with("slurm", {by_cgroup("/slurm", {std::string(1000, 'x')})}));
    const auto whole = node.bytes();
    for (const auto span : {offsetof(CompiledMatch, cgroup), offsetof(CompiledMatch, unit)}) {
        auto bytes = whole;
        const auto length = sizeof(NodeHeader) + 2 * sizeof(CompiledTenant) + span + offsetof(TextSpan, length);
        bytes.replace(length, 2, std::string("\x00\x01", 2));  // 256
        node.write(bytes);
        CHECK_FALSE(NodePolicy::read(node.path));
        bytes.replace(length, 2, std::string("\xff\x00", 2));
        node.write(bytes);
        CHECK(NodePolicy::read(node.path));
    }
}

TEST_CASE("a tenant's name that is none, in a damaged policy, is no verdict") {
    const Node node;
    node.publish(with("physics", {by_user("alice")}));
    auto bytes = node.bytes();
    bytes.replace(bytes.find("physics"), 7, "../../x");
    node.write(bytes);
    const auto policy = NodePolicy::read(node.path);
    REQUIRE(policy);
    CHECK(tenant_of(*policy, subject(alice)) == "default");
    CHECK(policy->decompile().tenants.size() == 1);
}

TEST_CASE("a node policy that is cut short is refused") {
    const Node node;
    node.publish(sample());
    const auto whole = node.bytes();
    for (std::size_t size = 0; size < whole.size(); size += size < 1000 || whole.size() - size < 600 ? 1 : 97) {
        node.write(whole.substr(0, size));
        REQUIRE_FALSE(NodePolicy::read(node.path));
    }
    node.write(whole + "x");
    CHECK_FALSE(NodePolicy::read(node.path));
}

TEST_CASE("a node policy with damaged bytes crashes nobody") {
    const Node node;
    node.publish(sample());
    const auto whole = node.bytes();
    const auto records = sizeof(NodeHeader) + 5 * sizeof(CompiledTenant) + 5 * sizeof(CompiledMatch);
    std::minstd_rand random(7);  // NOLINT: the same bytes in each run
    for (int i = 0; i < 3000; ++i) {
        auto bytes = whole;
        for (auto changes = random() % 4 + 1; changes > 0; --changes)
            bytes[random() % (random() % 4 ? records : bytes.size())] ^= static_cast<char>(1U << random() % 8);
        node.write(bytes);
        use(node.path);
    }
}

TEST_CASE("policies that differ in limits only have the same rules") {
    const Node node;
    auto policy = sample();
    const auto before = node.publish(policy);
    row_for(policy.tenant("physics").limits[index(Scope::tenant)], "*")[index(Resource::qp)] = 7;
    const auto limited = node.publish(policy);
    CHECK(limited.id() != before.id());
    CHECK(limited.rules() == before.rules());
    policy.tenant("physics").matches = {by_user("alice")};
    const auto matched = node.publish(policy);
    CHECK(matched.rules() != before.rules());
    policy.tenant("physics").matches = {by_user("bob")};
    CHECK(node.publish(policy).rules() != matched.rules());
}
