// Tenants in the policy file.
#include <cerrno>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "test/unit/policy/policy_texts.hpp"

using namespace rdmaquota;

namespace {

const std::string version = "version = 1\n";

// A tenant `name` with one entry in its match list.
std::string with_match(const std::string& entry, const std::string& name = "t") {
    return version + "[tenant.\"" + name + "\"]\nmatch = [" + entry + "]\n";
}

Match match_of(const std::string& entry, const std::string& name = "t") {
    const auto policy = good(with_match(entry, name));
    REQUIRE(policy.find(name) != nullptr);
    REQUIRE(policy.find(name)->matches.size() == 1);
    return policy.find(name)->matches[0];
}

Policy read(const std::string& path) {
    auto policy = read_policy(path);
    INFO((policy ? "" : policy.error()));
    REQUIRE(policy);
    return std::move(*policy);
}

// What read_policy says of one file, its path written as p.toml.
std::vector<std::string> warnings_of(const std::string& text) {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", text);
    auto warnings = read(path).warnings;
    for (auto& warning : warnings)
        for (auto at = warning.find(path); at != warning.npos; at = warning.find(path))
            warning.replace(at, path.size(), "p.toml");
    return warnings;
}

std::string file_error_of(const std::string& text) {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", text);
    const auto policy = read_policy(path);
    REQUIRE_FALSE(policy);
    REQUIRE_THAT(policy.error(), Catch::StartsWith(path));
    return "p.toml" + policy.error().substr(path.size());
}

std::vector<std::string> names(const Policy& policy) {
    std::vector<std::string> result;
    for (const auto& tenant : policy.tenants) result.push_back(tenant.name);
    return result;
}

}  // namespace

TEST_CASE("every key of a tenant is read") {
    const auto policy = good(version + R"(
[node."*"]
mr_bytes = "900GiB"
[tenant.physics]
weight = 200
[tenant.physics."*"]
qp = 4000
[tenant."physics/atlas"]
match = [{ group = "atlas" },
         { cgroup = "/slurm/**/job_*", members = ["@atlas", "alice", 1000, "*"] },
         { unit = "slurm*", user = 1000, group = "1001" }]
mode = "audit"
deny_errno = "EAGAIN"
grace = "10m"
rxe0.cq = 4
[tenant."physics/atlas".process."*"]
mr_bytes = "10GiB"
[tenant."user/{user}"]
match = [{ group = "users" }]
[tenant.default]
mode = "off"
grace = "90s"
)");
    CHECK(limit_in(policy.node, "*", Resource::mr_bytes) == 900ULL << 30);
    CHECK(names(policy) == std::vector<std::string>{"default", "physics", "physics/atlas", "user/{user}"});
    const auto& physics = *policy.find("physics");
    CHECK(physics.weight == 200);
    CHECK(limit_in(physics.limits[index(Scope::tenant)], "*", Resource::qp) == 4000);
    CHECK_FALSE(physics.mode);
    CHECK_FALSE(physics.grace_s);
    const auto& atlas = *policy.find("physics/atlas");
    CHECK_FALSE(atlas.weight);
    CHECK(atlas.mode == Mode::audit);
    CHECK(atlas.deny_errno == EAGAIN);
    CHECK(atlas.grace_s == 600);
    CHECK(limit_in(atlas.limits[index(Scope::tenant)], "rxe0", Resource::cq) == 4);
    CHECK(limit_in(atlas.limits[index(Scope::process)], "*", Resource::mr_bytes) == 10ULL << 30);
    CHECK(atlas.matches == std::vector<Match>{{"", "atlas", "", "", {}},
                                              {"", "", "/slurm/**/job_*", "", {"@atlas", "alice", "1000", "*"}},
                                              {"1000", "1001", "", "slurm*", {}}});
    CHECK(policy.find("default")->mode == Mode::off);
    CHECK(policy.find("default")->grace_s == 90);
    CHECK_FALSE(atlas.transient);
}

TEST_CASE("devices leave no handles of others, in a tenant and in those below it") {
    const TemporaryDirectory directory;
    const auto policy = read(write(directory, "p.toml", version + R"(
[tenant.physics]
devices = ["mlx5_0", "pci:0000:3b:00.0"]
"*" = { hca_handle = 8, qp = 4 }
[tenant."physics/atlas"]
mlx5_0.hca_handle = 2
[tenant."physics/cms"]
devices = []
[tenant."user/{user}"]
match = [{ group = "users" }]
devices = ["mlx5_1"]
[tenant."user/alice"."*"]
hca_handle = 3
[tenant.other]
)"));
    const auto handles = [&](const std::string& tenant, const std::string& device) {
        return limit_in(policy.find(tenant)->limits[index(Scope::tenant)], device, Resource::hca_handle);
    };
    CHECK(handles("physics", "*") == 0);
    CHECK(handles("physics", "mlx5_0") == 8);
    CHECK(handles("physics", "pci:0000:3b:00.0") == 8);
    CHECK(limit_in(policy.find("physics")->limits[index(Scope::tenant)], "*", Resource::qp) == 4);
    CHECK(handles("physics/atlas", "*") == 0);
    CHECK(handles("physics/atlas", "mlx5_0") == 2);
    CHECK(handles("physics/atlas", "pci:0000:3b:00.0") == unlimited);
    CHECK(handles("physics/cms", "*") == 0);
    CHECK(handles("user/{user}", "mlx5_1") == unlimited);
    CHECK(handles("user/alice", "*") == 0);
    CHECK(handles("user/alice", "mlx5_1") == 3);
    for (const auto& tenant : policy.tenants) CHECK(tenant.hides_devices == (tenant.name != "other" && tenant.name != "default"));
    CHECK_FALSE(policy.find("physics/cms")->limits[index(Scope::tenant)].size() > 1);
}

TEST_CASE("what devices cannot be is said") {
    const auto error = [](const std::string& text) { return file_error_of(version + text); };
    CHECK_THAT(error("[tenant.a]\ndevices = \"mlx5_0\"\n"), Catch::Contains("devices is a list"));
    for (const auto* device : {"*", "total", "mlx5_0/1", "no name", ""})
        CHECK_THAT(error(std::string("[tenant.a]\ndevices = [\"") + device + "\"]\n"), Catch::Contains("3:12: an entry of devices is"));
    CHECK_THAT(error("[tenant.a]\ndevices = [\"mlx5_0\"]\nmlx5_1.hca_handle = 4\n"),
               Catch::Contains("tenant 'a' has hca_handle for mlx5_1, which is not among its devices"));
}

TEST_CASE("a grace has a unit") {
    const auto grace = [](const std::string& text) {
        return good(version + "[tenant.t]\ngrace = \"" + text + "\"\n").find("t")->grace_s;
    };
    CHECK(grace("1s") == 1);
    CHECK(grace("36h") == 36 * 3600);
    CHECK(grace("7d") == default_grace_s);
    CHECK(grace("3650d") == 3650U * 24 * 3600);
    for (const std::string wrong :
         {"", "10", "m", "0s", "-1s", "1.5h", "10 m", "1w", "10mm", "3651d", "99999999999s"}) {
        INFO(wrong);
        CHECK_THAT(error_of(version + "[tenant.t]\ngrace = \"" + wrong + "\"\n"),
                   Catch::StartsWith("p.toml:3:9: '" + wrong + "' is no grace; write a time such as \"90s\""));
    }
    CHECK_THAT(error_of(version + "[tenant.t]\ngrace = 10\n"), Catch::Contains("grace is a number; write a word"));
}

TEST_CASE("entries of match") {
    CHECK(match_of("{ user = \"alice\" }").user == "alice");
    CHECK(match_of("{ user = \"*\" }") == Match{});
    CHECK(match_of("{ user = \"*\", cgroup = \"/a\" }").members == std::vector<std::string>{"*"});
    CHECK(match_of("{ user = 0 }").user == "0");
    CHECK(match_of("{ user = \"4294967294\" }").user == "4294967294");
    CHECK(match_of("{ group = \"domain users\" }").group == "domain users");
    CHECK(match_of("{ cgroup = \"/a/{job}\", user = 1 }", "t/{job}").cgroup == "/a/{job}");
    CHECK(match_of("{ cgroup = \"/{a}/{b}\" }", "t/{b}/{a}/{user}").cgroup == "/{a}/{b}");
    CHECK(match_of("{ user = 1 }", "t/{user}").user == "1");
    CHECK(good(version + "[tenant.t]\nmatch = []\n").find("t")->matches.empty());
    CHECK(good(version + "[[tenant.t.match]]\nuser = 1\n[[tenant.t.match]]\nuser = 2\n").find("t")->matches.size() ==
          2);
}

TEST_CASE("errors in an entry of match name file, line, column and a remedy") {
    struct Case {
        std::string entry, place, says;
        std::string tenant = "t";
    };
    const Case cases[] = {
        {"", "p.toml:3:9: ", "match is a string; write a list such as [{ group = \"hpc\" }]"},
        {"\"alice\"", "p.toml:3:10: ", "an entry of match is a table such as { group = \"hpc\" }, not a string"},
        {"{}", "p.toml:3:10: ", "must ask for something; write user, group, cgroup or unit"},
        {"{ usr = 1 }", "p.toml:3:12: ", "unknown key in match 'usr', did you mean 'user'?"},
        {"{ cgrup = \"/{a}\" }", "p.toml:3:12: ", "did you mean 'cgroup'?", "t/{a}"},
        {"{ members = [\"a\"] }", "p.toml:3:10: ", "must ask for something"},
        {"{ user = \"\" }", "p.toml:3:19: ", "user must be the name or number of one user, such as \"alice\" or 1000"},
        {"{ user = -1 }", "p.toml:3:19: ", "name or number of one user"},
        {"{ user = 4294967295 }", "p.toml:3:19: ", "name or number of one user"},
        {"{ user = \"99999999999\" }", "p.toml:3:19: ", "name or number of one user"},
        {"{ user = \"{user}\" }", "p.toml:3:19: ", "name or number of one user"},
        {"{ user = \"@hpc\" }", "p.toml:3:19: ", "name or number of one user"},
        {"{ user = [\"a\"] }", "p.toml:3:19: ", "name or number of one user"},
        {"{ group = \"a:b\" }", "p.toml:3:20: ", "group must be the name or number of one group, such as \"hpc\""},
        {"{ group = \"a\\nb\" }", "p.toml:3:20: ", "name or number of one group"},
        {"{ cgroup = 3 }", "p.toml:3:21: ", "cgroup is a number; write a pattern in quotes"},
        {"{ cgroup = \"slurm\" }", "p.toml:3:21: ", "must begin with '/'"},
        {"{ unit = \"slurmd\" }", "p.toml:3:19: ", "must end in .service"},
        {"{ user = 1, members = [\"a\"] }", "p.toml:3:22: ", "members is for entries with cgroup or unit"},
        {"{ cgroup = \"/a\", members = \"a\" }", "p.toml:3:37: ", "members is a string; write a list"},
        {"{ cgroup = \"/a\", members = [\"@\"] }", "p.toml:3:38: ", "a member is a user such as \"alice\", a group"},
        {"{ cgroup = \"/a\", members = [\"a\", \"@*\"] }", "p.toml:3:43: ", "a member is a user"},
        {"{ cgroup = \"/a\", members = [true] }", "p.toml:3:38: ", "a member is a user"},
        {"{ cgroup = \"/{job}\" }", "p.toml:3:21: ", "the name of tenant 't' does not use {job}; write * instead"},
        {"{ cgroup = \"/{a}/{b}\" }", "p.toml:3:21: ", "'t/{a}' does not use {b}", "t/{a}"},
        {"{ user = 1 }", "p.toml:3:10: ",
         "tenant 't/{job}' needs {job}; write it into this entry's cgroup, as in "
         "cgroup = \"/slurm/{job}\"",
         "t/{job}"},
        {"{ cgroup = \"/{a}\" }, { cgroup = \"/b\" }", "p.toml:3:31: ", "tenant 't/{a}' needs {a}", "t/{a}"},
        {"{ cgroup = \"/b/{user}\" }", "p.toml:3:21: ", "{user} is the effective user", "t/{user}"},
    };
    for (const auto& c : cases) {
        const auto text = c.entry.empty() ? version + "[tenant.t]\nmatch = \"x\"\n" : with_match(c.entry, c.tenant);
        INFO(text);
        const auto error = error_of(text);
        CHECK_THAT(error, Catch::StartsWith(c.place));
        CHECK_THAT(error, Catch::Contains(c.says));
    }
}

TEST_CASE("errors in a tenant's tables name file, line, column and a remedy") {
    struct Case {
        std::string text, place, says;
    };
    const auto in_t = [](const std::string& entry) { return "[tenant.t]\n" + entry + "\n"; };
    const Case cases[] = {
        {"[tenant.\"a b\"]", "p.toml:2:9: ", "'a b' is no tenant name: ' ' is not possible"},
        {"[tenant.\"a/{B}\"]", "p.toml:2:9: ", "'a/{B}' is no tenant name"},
        {"[tenant.node]", "p.toml:2:9: ", "write its limits below [node.\"*\"]"},
        {"[tenant.physics/atlas]", "p.toml:2:16: ", "a name or path with '/' must be quoted: write \"physics/atlas\""},
        {"[tenant.a/{user}]", "p.toml:2:10: ", "a name or path with '/' must be quoted"},
        {in_t("grace = /7"), "p.toml:3:9: ", "must be quoted"},
        {"[tenant.{user}]", "p.toml:2:9: ", "a name with braces must be quoted"},
        {"tenant.physics = 3", "p.toml:2:8: ", "'physics' is no tenant; write limits below [tenant.default.\"*\"]"},
        {"[tenant.default]\nmatch = []", "p.toml:3:1: ", "default has no match"},
        {"[node]\nmatch = []", "p.toml:3:1: ", "[node] has no match; only a tenant has one"},
        {"[process]\nmatch = []", "p.toml:3:1: ", "[process] has no match"},
        {"[node]\nmode = \"off\"", "p.toml:3:1: ", "unknown key 'mode': [node] has tables of limits by device only"},
        {"[node]\nqp = 1", "p.toml:3:1: ", "write it below a table such as [node.\"*\"]"},
        {in_t("moed = \"off\""), "p.toml:3:1: ", "unknown key in [tenant.t] 'moed', did you mean 'mode'?"},
        {in_t("zzzzz = 3"), "p.toml:3:1: ", "choose one of match, mode, deny_errno, weight, grace, max_delay, process"},
        {in_t("mode = \"on\""), "p.toml:3:8: ", "choose one of enforce, audit, off"},
        {in_t("deny_errno = \"EPERM\""), "p.toml:3:14: ", "choose one of EDQUOT, EAGAIN, ENOMEM"},
        {in_t("weight = 0"), "p.toml:3:10: ", "weight must be a whole number from 1 to 10000"},
        {in_t("weight = 10001"), "p.toml:3:10: ", "weight must be a whole number from 1 to 10000"},
        {in_t("qp = 3"), "p.toml:3:1: ", "qp needs a device; write it below a table such as [tenant.t.\"*\"]"},
        {in_t("process = 3"), "p.toml:3:11: ", "process is a number; it must be a table"},
        {in_t("process.qp = 3"), "p.toml:3:9: ", "write it below a table such as [tenant.t.process.\"*\"]"},
        {in_t("bypass = \"report\""), "p.toml:3:1: ", "bypass is possible for the tenant default only; remove it"},
        {in_t("backstop = \"/x\""), "p.toml:3:1: ", "backstop is possible for the tenant default only; remove it"},
        {"[tenant.t.match]\nuser = 1", "p.toml:2:11: ", "match is a key of a tenant and no device; write match = ..."},
        {"[tenant.\"a/b\".mode.\"*\"]", "p.toml:2:15: ", "write mode = ... below [tenant.\"a/b\"]"},
        {"[tenant.t.\"a b\"]\nqp = 1", "p.toml:2:11: ", "'a b' is no device name"},
        {"[tenant.a.b]\nmatch = []",
         "p.toml:3:1: ", "unknown resource 'match' of the device 'b'; if b is a tenant, write [tenant.\"a/b\"]"},
        {"[tenant.a.b.\"*\"]\nqp = 1", "p.toml:2:13: ", "if b is a tenant, write [tenant.\"a/b\"]"},
        {"[tenant.a.\"*\"]\nmatch = []", "p.toml:3:1: ", "unknown resource 'match'; choose one of"},
        {"[tenant.default.b]\nmode = 1", "p.toml:3:1: ", "unknown resource 'mode'"},
        {"[process.\"*\"]\nmr_bytes = { limit = 4, guarantee = 3 }", "p.toml:3:25: ",
         "a guarantee is possible for a tenant as a whole only"},
        {"[tenant.t.process.\"*\"]\nqp = { soft = 3 }", "p.toml:3:8: ",
         "a soft limit is possible for a tenant as a whole only"},
        {"[node.\"*\"]\nqp = { guarantee = 3 }", "p.toml:3:8: ", "a guarantee is possible for a tenant as a whole only"},
        {"[tenant.t.\"*\"]\nqp = { limit = 4, soft = 5 }", "p.toml:3:26: ",
         "the soft limit is above the limit; it can never be reached"},
        {"[tenant.t.\"*\"]\nqp = { least = 4 }", "p.toml:3:8: ", "unknown value 'least'"},
        {"[tenant.t.\"*\"]\nqp = { guarantee = \"max\" }", "p.toml:3:20: ", "a guarantee must be an amount"},
        {"[tenant.t.total]\nqp = { soft = 3 }", "p.toml:3:8: ", "there is no soft limit for the sum over devices"},
        {"[tenant.\"u/{user}\".\"*\"]\nqp = { guarantee = 3 }", "p.toml:3:8: ", "a template has no guarantees"},
        {"grant_wait = \"5h\"", "p.toml:2:14: ", "'5h' is no time to wait"},
        {"[tenant.t.process.\"a/1\"]\nmr = 1", "p.toml:3:1: ", "mr is no resource of a port"},
        {"[[dynamic]]\nwatch = \"qp\"\nfloor = 1\ntenant = \"a b\"",
         "p.toml:5:10: ", "the tenant of a rule is a name such as \"physics/atlas\", or \"*\" for each tenant"},
        {"[[dynamic]]\nwatch = \"qp\"\nfloor = 1\ntenant = 3", "p.toml:5:10: ", "the tenant of a rule is a name"},
    };
    for (const auto& c : cases) {
        INFO(c.text);
        const auto error = error_of(version + c.text + "\n");
        CHECK_THAT(error, Catch::StartsWith(c.place));
        CHECK_THAT(error, Catch::Contains(c.says));
    }
}

TEST_CASE("a dynamic rule may name its tenant") {
    const std::string rule = "[[dynamic]]\nwatch = \"qp\"\nfloor = 1\n";
    const auto policy = good(version + rule + rule + "tenant = \"physics/atlas\"\n" + rule + "tenant = \"*\"\n");
    REQUIRE(policy.dynamic.size() == 3);
    CHECK(policy.dynamic[0].tenant == "*");
    CHECK(policy.dynamic[1].tenant == "physics/atlas");
    CHECK(policy.dynamic[2].tenant == "*");
}

TEST_CASE("matches are tried in the order in which they stand in the files") {
    const auto policy = good(version +
                             "[tenant.d.\"*\"]\nqp = 1\n[tenant.c]\nmatch = [{ user = 1 }]\n[tenant.b]\n"
                             "match = [{ user = 2 }]\n[tenant.d]\nmatch = [{ user = 3 }]\n");
    CHECK(names(policy) == std::vector<std::string>{"default", "c", "b", "d"});
}

TEST_CASE("a later file wins key by key in a tenant, and its list of matches replaces") {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml",
                            version +
                                "[tenant.a]\nmode = \"audit\"\ngrace = \"1h\"\nmatch = [{ user = 1 }, { user = 2 }]\n"
                                "[tenant.a.\"*\"]\nqp = 1\ncq = 1\n[tenant.b]\nmatch = [{ user = 3 }]\n"
                                "[tenant.c]\nmatch = [{ user = 4 }]\n[node.\"*\"]\nqp = 1\npd = 1\n");
    write(directory, "conf.d/10.toml",
          "[tenant.a]\nmatch = [{ group = 5 }]\ngrace = \"2h\"\n[tenant.a.\"*\"]\nqp = 2\n"
          "[tenant.b]\nweight = 5\n[node.\"*\"]\nqp = 2\n");
    const auto policy = read_policy(path);
    REQUIRE(policy);
    CHECK(names(*policy) == std::vector<std::string>{"default", "b", "c", "a"});
    const auto& a = *policy->find("a");
    CHECK(a.mode == Mode::audit);
    CHECK(a.grace_s == 7200);
    CHECK(a.matches == std::vector<Match>{{"", "5", "", "", {}}});
    CHECK(limit_in(a.limits[index(Scope::tenant)], "*", Resource::qp) == 2);
    CHECK(limit_in(a.limits[index(Scope::tenant)], "*", Resource::cq) == 1);
    CHECK(policy->find("b")->weight == 5);
    CHECK(policy->find("b")->matches.size() == 1);
    CHECK(limit_in(policy->node, "*", Resource::qp) == 2);
    CHECK(limit_in(policy->node, "*", Resource::pd) == 1);
}

TEST_CASE("a tenant with tenants below it has no processes, in whichever file they are") {
    const std::string match = "match = [{ user = 1 }]\n";
    CHECK(file_error_of(version + "[tenant.a]\n" + match + "[tenant.\"a/b/c\"]\n") ==
          "p.toml:3:10: tenant 'a' has no processes, since 'a/b/c' lies below it; move match to a tenant of its own, "
          "such as 'a/other'");
    CHECK(file_error_of(version + "[tenant.a.process.\"*\"]\nqp = 1\n[tenant.\"a/b\"]\n") ==
          "p.toml:2:11: tenant 'a' has no processes, since 'a/b' lies below it; move process to the tenants below it");
    for (const auto& [inner, below] : {std::pair{"user", "user/{user}"}, std::pair{"x/{a}", "x/y/z"},
                                       std::pair{"x/y", "x/{a}/{b}"}, std::pair{"x/{a}", "x/{a}/{b}"}}) {
        INFO(inner << " " << below);
        const bool captures = std::string(inner) == "x/{a}";
        CHECK_THAT(file_error_of(version + "[tenant.\"" + inner + "\"]\nmatch = [{ cgroup = \"/" +
                                 (captures ? "{a}" : "b") + "\", user = 1 }]\n[tenant.\"" + below + "\"]\n"),
                   Catch::Contains(std::string("tenant '") + inner + "' has no processes, since '" + below + "'"));
    }
    CHECK(warnings_of(version + "[tenant.a.\"*\"]\nqp = 1\n[tenant.\"a/b\"]\n" + match + "[tenant.ab]\n").empty());

    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", version + "[tenant.a]\n" + match);
    CHECK(read_policy(path));
    write(directory, "conf.d/10.toml", "[tenant.\"a/b\".\"*\"]\nqp = 1\n");
    CHECK_THAT(read_policy(path).error(), Catch::StartsWith(path + ":3:10: tenant 'a' has no processes"));
    CHECK(read_policy(path, version));
}

TEST_CASE("what is accepted and probably not meant is warned of") {
    const auto one = [](const std::string& text) {
        const auto warnings = warnings_of(text);
        REQUIRE(warnings.size() == 1);
        return warnings[0];
    };
    CHECK(
        one(with_match("{ cgroup = \"/a\", members = [\"*\"] }")) ==
        "p.toml:3:10: members has \"*\": all users of the node may write this tenant's ledger; name users and groups");
    CHECK(one(with_match("{ cgroup = \"/a\" }")) ==
          "p.toml:3:10: the entry has no members, so only root's programs can be charged here; add members = "
          "[\"alice\", \"@hpc\"]");
    CHECK_THAT(one(with_match("{ unit = \"a.service\", members = [] }")), Catch::Contains("has no members"));
    CHECK(one(with_match("{ cgroup = \"/**/job_*\", user = 1 }")) ==
          "p.toml:3:10: users can make cgroups that '/**/job_*' matches, below user@UID.service, and so choose this "
          "tenant; write the path from its beginning");
    CHECK(one(version + "[tenant.\"user/{user}\"]\n") ==
          "p.toml:2:9: template 'user/{user}' has no match, so no process is in it; add match");
    CHECK(
        one(version + "[tenant.b]\nmatch = [{ group = \"x\" }]\n[tenant.a]\nmatch = [{ user = 1, group = \"x\" }]\n") ==
        "p.toml:5:10: this entry of tenant 'a' never decides: the one at p.toml:3:10 holds first; move or remove one "
        "of the two");
    for (const std::string first : {"[tenant.\"u/{user}\"]\nmatch = [{ user = \"*\" }]\n", "[tenant.u]\nmatch = [{ user = \"*\" }]\n"})
        CHECK_THAT(one(version + first + "[tenant.a]\nmatch = [{ user = 1, cgroup = \"/a\", members = [\"x\"] }]\n"),
                   Catch::Contains("this entry of tenant 'a' never decides"));
    CHECK(warnings_of(version + "[tenant.\"u/{a}\"]\nmatch = [{ cgroup = \"/{a}\", user = 1 }]\n" +
                      "[tenant.\"v/{a}\"]\nmatch = [{ cgroup = \"/{a}\", user = 1 }]\n").empty());
    CHECK(warnings_of(with_match("{ cgroup = \"/a\" }", "t/{user}")).empty());
    CHECK(warnings_of(with_match("{ cgroup = \"/a\", members = [\"@x\"] }, { user = 1 }, { group = 1 }")).empty());
    CHECK(warnings_of(with_match("{ user = 1, group = 2 }, { user = 1 }")).empty());
    CHECK(warnings_of(version + "[tenant.\"x/{a}\"]\n[tenant.\"x/{a}/{user}\"]\n" +
                      "match = [{ cgroup = \"/{a}\" }, { cgroup = \"/{a}\", user = 1 }]\n")
              .empty());
}

TEST_CASE("limits that the tree makes pointless, and guarantees that cannot be kept, are warned of") {
    const auto lab = [](const std::string& parent, const std::string& child) {
        return warnings_of(version + "[tenant.lab.\"*\"]\n" + parent + "\n[tenant.\"lab/a\"]\nmatch = [{ user = 1 }]\n" + child);
    };
    const auto one = [&](const std::string& parent, const std::string& child) {
        const auto warnings = lab(parent, child);
        REQUIRE(warnings.size() == 1);
        return warnings[0];
    };
    CHECK_THAT(one("qp = 10", "[tenant.\"lab/a\".\"*\"]\nqp = 11\n"),
               Catch::Contains("the limit of 11 qp of tenant 'lab/a' on * can never be reached: tenant 'lab' above it has 10"));
    CHECK_THAT(one("qp = 10", "[tenant.\"lab/a\".\"*\"]\nqp = { guarantee = 11 }\n"),
               Catch::Contains("tenant 'lab' may use 10 qp on *, less than the 11 that are guaranteed to the tenants below it"));
    CHECK_THAT(one("cq = 1", "[tenant.\"lab/a\".\"*\"]\nqp = { guarantee = 1 }\n"),
               Catch::Contains("the guarantee of 1 qp of tenant 'lab/a' on * reserves nothing: neither [node] nor a tenant above it"));
    const std::string other = "[tenant.\"lab/b\".\"*\"]\nqp = { guarantee = 4 }\n";
    CHECK_THAT(one("qp = 10", other + "[tenant.\"lab/a\".\"*\"]\nqp = 7\n"),
               Catch::Contains("tenant 'lab/a' on * can never be reached: tenant 'lab' above it has 10, of which 4 are guaranteed to others"));
    CHECK(lab("qp = 10", other + "[tenant.\"lab/a\".\"*\"]\nqp = { limit = 6, guarantee = 6 }\n").empty());
    CHECK_THAT(one("qp = \"50%\"", "[tenant.\"lab/b\".\"*\"]\nqp = { guarantee = \"20%\" }\n[tenant.\"lab/a\".\"*\"]\nqp = \"31%\"\n"),
               Catch::Contains("tenant 'lab' above it has 50%, of which 20% are guaranteed to others"));
    CHECK_THAT(one("cq = 1", "[tenant.\"lab/a\".\"*\"]\nqp = 5\n[tenant.\"lab/a\".process.\"*\"]\nqp = 6\n"),
               Catch::Contains("the limit of 6 qp for each process of tenant 'lab/a' on * can never be reached: tenant 'lab/a' has 5"));
    CHECK_THAT(one("qp = 5", "[tenant.\"lab/a\".process.\"*\"]\nqp = 6\n"),
               Catch::Contains("the limit of 6 qp for each process of tenant 'lab/a' on * can never be reached: tenant 'lab' has 5"));
    const auto of_all = [](const std::string& of_default) {
        return warnings_of(version + "[process.\"*\"]\nqp = 6\n[tenant.default.\"*\"]\n" + of_default +
                           "\n[tenant.lab.\"*\"]\nqp = 5\n[tenant.\"lab/a\"]\nmatch = [{ user = 1 }]\n");
    };
    CHECK(of_all("qp = 6").empty());
    REQUIRE(of_all("qp = 4").size() == 1);
    CHECK_THAT(of_all("qp = 4")[0], Catch::Contains("the limit of 6 qp for each process on * can never be reached in any tenant: "));
    const auto below_template = warnings_of(version + "[tenant.\"slurm/{account}\".\"*\"]\nqp = 5\n" +
                                            "[tenant.\"slurm/atlas/x\"]\nmatch = [{ user = 1 }]\n" +
                                            "[tenant.\"slurm/atlas/x\".\"*\"]\nqp = 6\n");
    REQUIRE(below_template.size() == 1);
    CHECK_THAT(below_template[0],
               Catch::Contains("tenant 'slurm/atlas/x' on * can never be reached: tenant 'slurm/{account}' above it has 5"));
    CHECK(lab("qp = 10", "[tenant.\"lab/a\".\"*\"]\nqp = { limit = 10, guarantee = 10, soft = 5 }\n").empty());
    CHECK_THAT(error_of(version + "[tenant.\"u/{user}\"]\nmatch = [{ user = 1 }]\n[tenant.\"u/{user}\".\"*\"]\nqp = { guarantee = 1 }\n"),
               Catch::Contains("guarantee"));
}
