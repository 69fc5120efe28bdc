#include "shm/policy/node_policy.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "shm/layout_version.hpp"
#include "shm/policy/node_image.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

constexpr uid_t alice = 1000, bob = 1001;
constexpr gid_t atlas = 2000, users = 100;

NameLookup names() {
    return {[](const std::string& name) -> std::optional<uid_t> {
                if (name == "alice") return alice;
                return name == "bob" ? std::optional(bob) : std::nullopt;
            },
            [](const std::string& name) -> std::optional<gid_t> {
                if (name == "atlas") return atlas;
                return name == "users" ? std::optional(users) : std::nullopt;
            }};
}

Match by_user(std::string name) {
    return {.user = std::move(name), .group = {}, .cgroup = {}, .unit = {}, .members = {}};
}
Match by_group(std::string name) {
    return {.user = {}, .group = std::move(name), .cgroup = {}, .unit = {}, .members = {}};
}
Match by_cgroup(std::string pattern, std::vector<std::string> members = {}) {
    return {.user = {}, .group = {}, .cgroup = std::move(pattern), .unit = {}, .members = std::move(members)};
}
Match by_unit(std::string pattern) {
    return {.user = {}, .group = {}, .cgroup = {}, .unit = std::move(pattern), .members = {}};
}

struct Node {
    TemporaryDirectory directory;
    std::string path = directory / "policy";

    Result<void> try_publish(const Policy& policy) const {
        const auto lock = PolicyLock::take(path);
        if (!lock) return Error{lock.error()};
        return publish_node_policy(*lock, path, policy, names());
    }
    NodePolicy publish(const Policy& policy) const {
        const auto published = try_publish(policy);
        REQUIRE(published);
        auto read = NodePolicy::read(path);
        REQUIRE(read);
        return std::move(*read);
    }
    std::string bytes() const {
        std::ostringstream text;
        text << std::ifstream(path, std::ios::binary).rdbuf();
        return text.str();
    }
    void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

Policy with(std::string tenant, std::vector<Match> matches) {
    Policy policy;
    policy.tenant(tenant).matches = std::move(matches);
    return policy;
}

Subject subject(std::optional<uid_t> user, std::optional<gid_t> group = {}, std::string_view cgroup = {}) {
    return {user, group, {}, cgroup};
}

std::string tenant_of(const NodePolicy& policy, const Subject& subject) { return policy.find(subject).tenant; }

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
    CHECK(read.weight == written.weight);
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

TEST_CASE("the node policy's layout is version 4") {
    CHECK(layout_version == 4);
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

TEST_CASE("a policy without matches puts every process into default") {
    const Node node;
    const auto policy = node.publish({});
    CHECK_FALSE(policy.asks_for_ids());
    CHECK_FALSE(policy.asks_for_cgroup());
    const auto verdict = policy.find(subject(alice, atlas, "/a"));
    CHECK(verdict.tenant == "default");
    CHECK(verdict.from == "default");
    CHECK_FALSE(verdict.match);
    CHECK_FALSE(verdict.hidden);
}

TEST_CASE("a match by user looks at the user alone") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_user("alice")}));
    CHECK(policy.asks_for_ids());
    CHECK_FALSE(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject(alice)) == "physics");
    CHECK(tenant_of(policy, subject(bob)) == "default");
    CHECK(tenant_of(policy, subject(std::nullopt)) == "default");
}

TEST_CASE("a match by group looks at the effective group and the supplementary ones") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_group("atlas")}));
    const std::array<gid_t, 2> with_atlas{7, atlas}, without{7, 8};
    CHECK(policy.asks_for_ids());
    CHECK(tenant_of(policy, {bob, users, with_atlas, ""}) == "physics");
    CHECK(tenant_of(policy, {bob, atlas, without, ""}) == "physics");
    CHECK(tenant_of(policy, {bob, users, without, ""}) == "default");
    CHECK(tenant_of(policy, {bob, std::nullopt, {}, ""}) == "default");
}

TEST_CASE("root's number is a user like others") {
    const Node node;
    const auto policy = node.publish(with("physics", {by_user("alice"), by_group("atlas")}));
    CHECK(tenant_of(policy, subject(uid_t{0}, gid_t{0})) == "default");
}

TEST_CASE("a match by cgroup looks at the path alone") {
    const Node node;
    const auto policy = node.publish(with("slurm", {by_cgroup("/slurm/**/job_*")}));
    CHECK_FALSE(policy.asks_for_ids());
    CHECK(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/uid_1000/job_7/step_0")) == "slurm");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/x")) == "default");
}

TEST_CASE("a match by unit looks at the unit alone") {
    const Node node;
    const auto policy = node.publish(with("storage", {by_unit("ceph-*.service")}));
    CHECK_FALSE(policy.asks_for_ids());
    CHECK(policy.asks_for_cgroup());
    CHECK(tenant_of(policy, subject({}, {}, "/system.slice/ceph-osd.service")) == "storage");
    CHECK(tenant_of(policy, subject({}, {}, "/system.slice/other.service/ceph-osd.service")) == "default");
}

TEST_CASE("all conditions of one match must hold") {
    const Node node;
    const auto policy = node.publish(with(
        "physics",
        {{.user = "alice", .group = "atlas", .cgroup = "/system.slice/*/run", .unit = "a.service", .members = {}}}));
    const std::string_view path = "/system.slice/a.service/run";
    CHECK(tenant_of(policy, subject(alice, atlas, path)) == "physics");
    CHECK(tenant_of(policy, subject(bob, atlas, path)) == "default");
    CHECK(tenant_of(policy, subject(alice, users, path)) == "default");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/b.service/run")) == "default");
    CHECK(tenant_of(policy, subject(alice, atlas, "/system.slice/a.service/walk")) == "default");
}

TEST_CASE("the first match in the order of the file wins and is named") {
    const Node node;
    Policy policy;
    policy.tenant("b").matches = {by_user("bob"), by_group("atlas")};
    policy.tenant("a").matches = {by_user("alice"), by_group("atlas"), by_group("users")};
    const auto read = node.publish(policy);
    CHECK(read.find(subject(alice, atlas)).tenant == "b");
    CHECK(read.find(subject(alice, atlas)).match == 1U);
    CHECK(read.find(subject(alice, users)).tenant == "a");
    CHECK(read.find(subject(alice, users)).match == 0U);
    CHECK(read.find(subject({}, users)).match == 2U);
}

TEST_CASE("transient tenants are tried first") {
    const Node node;
    Policy policy;
    policy.tenant("user/{user}").matches = {by_group("users")};
    for (const auto* name : {"job-7", "job-8"}) {
        policy.tenant(name).transient = true;
        policy.tenant(name).matches = {by_cgroup("/slurm")};
    }
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(alice, users, "/slurm")) == "job-7");
    CHECK(tenant_of(read, subject(alice, users, "/other")) == "user/#1000");
    REQUIRE(read.decompile().tenants.size() == 4);
    CHECK(read.decompile().tenants[1].name == "user/{user}");
}

TEST_CASE("what a container is bound to is tried before all others") {
    const Node node;
    Policy policy;
    policy.tenant("job").transient = true;
    policy.tenant("job").matches = {by_cgroup("/")};
    policy.tenant("blue").matches = {by_cgroup("/libpod-1"), by_user("alice")};
    policy.tenant("blue").matches.front().bound = true;
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(alice, users, "/libpod-1/below")) == "blue");
    CHECK(tenant_of(read, subject(alice, users, "/libpod-12")) == "job");
    CHECK(read.decompile().find("blue")->matches == policy.find("blue")->matches);
    CHECK(node.publish(read.decompile()).decompile().find("blue")->matches == policy.find("blue")->matches);
}

TEST_CASE("a cgroup that is not known hides matches by it, and the verdict says so") {
    const Node node;
    Policy policy;
    policy.tenant("slurm").matches = {{.user = "alice", .group = {}, .cgroup = "/slurm", .unit = {}, .members = {}}};
    policy.tenant("storage").matches = {by_user("bob"), by_unit("*.service")};
    policy.tenant("rest").matches = {by_group("users")};
    const auto read = node.publish(policy);
    CHECK(read.find(subject(alice, users)).tenant == "rest");
    CHECK(read.find(subject(alice, users)).hidden);
    CHECK(read.find(subject(uid_t{5}, users)).hidden);   // by unit
    CHECK_FALSE(read.find(subject(bob, users)).hidden);  // decided before
    CHECK_FALSE(read.find(subject(alice, users, "/")).hidden);
    CHECK(read.find(subject(uid_t{5})).tenant == "default");
}

TEST_CASE("a template with {user} has one tenant for each user's number") {
    const Node node;
    const auto policy = node.publish(with("user/{user}/jobs", {by_cgroup("/slurm")}));
    CHECK(policy.asks_for_ids());
    const auto verdict = policy.find(subject(uid_t{1234}, {}, "/slurm"));
    CHECK(verdict.tenant == "user/#1234/jobs");
    CHECK(verdict.from == "user/{user}/jobs");
    CHECK(verdict.match == 0U);
    CHECK(tenant_of(policy, subject({}, {}, "/slurm")) == "default");
}

TEST_CASE("a template takes what its pattern captures") {
    const Node node;
    const auto policy =
        node.publish(with("slurm/{user}/{cluster}-job-{job}", {by_cgroup("/slurm_{cluster}/*/job_{job}")}));
    CHECK(tenant_of(policy, subject(alice, {}, "/slurm_a/x/job_7/step_0")) == "slurm/#1000/a-job-7");
    CHECK(tenant_of(policy, subject(alice, {}, "/slurm_a/x/job_")) == "default");
}

TEST_CASE("a template matches only where its captures make a tenant's name") {
    const Node node;
    Policy sample;
    sample.tenant("{job}").matches = {by_cgroup("/slurm/{job}")};
    sample.tenant("rest").matches = {by_cgroup("/slurm")};
    const auto policy = node.publish(sample);
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/a")) == "a");
    for (const std::string value : {"-a", ".a", "..", "a b", "a+b", "#1000", "{user}", "node", "\xc3\xa4"})
        CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + value)) == "rest");
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + std::string(tenant_name_bytes - 1, 'x'))) ==
          std::string(tenant_name_bytes - 1, 'x'));
    CHECK(tenant_of(policy, subject({}, {}, "/slurm/" + std::string(tenant_name_bytes, 'x'))) == "rest");
}

TEST_CASE("the key of a template's instance is no longer than a tenant's name") {
    const Node node;
    constexpr uid_t user = 4'000'000'000;
    const std::string longest(tenant_name_bytes - 1 - std::string_view("/#4000000000").size(), 'x');
    CHECK(tenant_of(node.publish(with(longest + "/{user}", {by_group("users")})), subject(user, users)) ==
          longest + "/#4000000000");
    CHECK(tenant_of(node.publish(with(longest + "x/{user}", {by_group("users")})), subject(user, users)) == "default");
}

TEST_CASE("a template whose pattern lacks its capture matches nothing") {
    const Node node;
    CHECK(tenant_of(node.publish(with("slurm/{job}", {by_group("users")})), subject(alice, users)) == "default");
}

TEST_CASE("a match with an unknown user or group is kept and never holds") {
    const Node node;
    Policy policy;
    policy.tenant("physics").matches = {by_user("carol"), by_group("hpc")};
    policy.tenant("slurm").matches = {by_cgroup("/slurm", {"carol", "alice", "@hpc", "@users", "*"}),
                                      by_cgroup("/other", {"carol"})};
    const auto read = node.publish(policy);
    CHECK(tenant_of(read, subject(uid_t{0}, gid_t{0})) == "default");
    CHECK(tenant_of(read, subject({}, {}, "/slurm")) == "slurm");
    const auto unknown = read.unknown_names();
    REQUIRE(unknown.size() == 4);
    CHECK((unknown[0].tenant == "physics" && unknown[0].name == "carol"));
    CHECK((unknown[1].tenant == "physics" && unknown[1].name == "@hpc"));
    CHECK((unknown[2].tenant == "slurm" && unknown[2].name == "carol"));
    CHECK((unknown[3].tenant == "slurm" && unknown[3].name == "@hpc"));
    CHECK(read.decompile().find("physics")->matches == policy.find("physics")->matches);
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
    bytes[offsetof(NodeHeader, layout_version)] = 5;
    node.write(bytes);
    CHECK_THAT(NodePolicy::read(node.path).error(), Catch::Contains("its layout version is 5, this rdmaquota needs 4"));
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

TEST_CASE("ten thousand matches are read and tried quickly") {
    const Node node;
    Policy policy;
    for (int i = 0; i < 10000; ++i)
        policy.tenant("t" + std::to_string(i)).matches = {
            {.user = "bob", .group = {}, .cgroup = "/slurm/**/job_" + std::to_string(i), .unit = {}, .members = {}}};
    node.publish(policy);
    const auto begin = std::chrono::steady_clock::now();
    const auto read = NodePolicy::read(node.path);
    REQUIRE(read);
    CHECK(tenant_of(*read, subject(alice, users, "/slurm/a/b/c/job_7")) == "default");
    const auto took = std::chrono::steady_clock::now() - begin;
    CHECK(took < std::chrono::milliseconds(100));  // 1 ms where nothing else runs
    CHECK(tenant_of(*read, subject(bob, users, "/slurm/a/b/c/job_9999")) == "t9999");
}
