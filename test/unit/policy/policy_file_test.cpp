#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "policy/file/policy_file.hpp"
#include "test/unit/policy/policy_texts.hpp"

using namespace rdmaquota;

TEST_CASE("a policy that sets nothing has the defaults") {
    const auto policy = good("version = 1\n");
    CHECK(policy.mode == Mode::enforce);
    CHECK(policy.on_unavailable == Unavailable::allow);
    CHECK(deny_errno_name(policy.deny_errno) == "EDQUOT");
    CHECK(policy.log_level == LogLevel::warning);
    CHECK(policy.process.empty());
    CHECK(policy.node.empty());
    REQUIRE(policy.tenants.size() == 1);
    CHECK(policy.tenants[0].name == "default");
    CHECK(default_limits(policy).empty());
}

TEST_CASE("every key of the schema is read") {
    const auto policy = good(R"(
version = 1
mode = "audit"
on_unavailable = "deny"
deny_errno = "ENOMEM"
clamp_device_attr = true
log = { level = "debug", target = "file", file = "/var/log/q" }
[process."*"]
qp = 100
mr_bytes = "10GiB"
[process.mlx5_0]
cq = "10k"
[tenant.default.total]
qp = "max"
)");
    CHECK(policy.mode == Mode::audit);
    CHECK(policy.on_unavailable == Unavailable::deny);
    CHECK(policy.deny_errno == ENOMEM);
    CHECK(policy.clamp_device_attr);
    CHECK(policy.log_level == LogLevel::debug);
    CHECK(policy.log_target == LogTarget::file);
    CHECK(policy.log_file == "/var/log/q");
    CHECK(limit_in(policy.process, "*", Resource::qp) == 100);
    CHECK(limit_in(policy.process, "*", Resource::mr_bytes) == 10ULL << 30);
    CHECK(limit_in(policy.process, "*", Resource::cq) == unset);
    CHECK(limit_in(policy.process, "mlx5_0", Resource::cq) == 10'000);
    CHECK(limit_in(default_limits(policy), "total", Resource::qp) == unlimited);
}

TEST_CASE("every resource can be limited") {
    for (const auto& resource : resource_table) {
        const auto policy = good("version = 1\n[process.\"*\"]\n" + std::string(resource.name) + " = 7\n");
        CHECK(limit_in(policy.process, "*", resource.id) == 7);
    }
}

TEST_CASE("a tenant says what the sidecar does for it") {
    const auto policy = good("version = 1\n[tenant.default]\nbackstop = \"/slurm\"\nmlx5_0.qp = 3\n");
    CHECK(policy.sidecar.backstop == "/slurm");
    REQUIRE(default_limits(policy).size() == 1);
    CHECK(default_limits(policy)[0].device == "mlx5_0");
}

TEST_CASE("an answer to a bypass that is no longer given is read with a warning") {
    for (const std::string word : {"charge", "limit", "kill"}) {
        const auto policy = good("version = 1\n[tenant.default]\nbypass = \"" + word + "\"\n");
        REQUIRE(policy.warnings.size() == 1);
        CHECK(policy.warnings[0] == "p.toml:3:10: bypass = \"" + word +
                                        "\" is no longer possible: a bypass is reported, nothing more; remove it");
    }
    CHECK(good("version = 1\n[tenant.default]\nbypass = \"report\"\n").warnings.empty());
}

TEST_CASE("errors name file, line, column and a remedy") {
    struct Case {
        std::string text;
        std::string place;
        std::string says;
    };
    const auto row = [](const std::string& entry) { return "version = 1\n[process.\"*\"]\n" + entry + "\n"; };
    const Case cases[] = {
        {"", "p.toml:1:1: ", "write version = 1"},
        {"version = 2", "p.toml:1:11: ", "version 1 only"},
        {"version = \"1\"", "p.toml:1:11: ", "version 1 only"},
        {"version = 1\nmod = \"off\"", "p.toml:2:1: ", "did you mean 'mode'?"},
        {"version = 1\nmode = \"enforced\"", "p.toml:2:8: ", "choose one of enforce, audit, off"},
        {"version = 1\nmode = enforce", "p.toml:2:8: ", "must be quoted"},
        {"version = 1\nmode = 3", "p.toml:2:8: ", "word in quotes"},
        {"version = 1\nclamp_device_attr = 1", "p.toml:2:21: ", "write true or false"},
        {"version = 1\ndeny_errno = \"EPERM\"", "p.toml:2:14: ", "EDQUOT, EAGAIN, ENOMEM"},
        {"version = 1\n[log]\nlevel = \"loud\"", "p.toml:3:9: ", "choose one of none"},
        {"version = 1\n[log]\nlevl = \"info\"", "p.toml:3:1: ", "did you mean 'level'?"},
        {"version = 1\n[log]\nfile = \"log\"", "p.toml:3:8: ", "absolute path"},
        {"version = 1\n[log]\nfile = \"/" + std::string(300, 'x') + '"', "p.toml:3:8: ", "at most 255 bytes"},
        {"version = 1\n[process]\nqp = 1", "p.toml:3:1: ", "[process.\"*\"]"},
        {"version = 1\n[process.*]\nqp = 1", "p.toml:2:10: ", "write \"*\""},
        {"version = 1\n[process.\"a b\"]\nqp = 1", "p.toml:2:10: ", "no device name"},
        {"version = 1\n[process.\"mlx5_0/0\"]\nqp = 1", "p.toml:2:10: ", "no device name"},
        {"version = 1\n[process.\"*/1\"]\nqp = 1", "p.toml:2:10: ", "no device name"},
        {"version = 1\n[tenant.default.\"mlx5_0/1\"]\nqp = 1\nmr = 1", "p.toml:4:1: ",
         "mr is no resource of a port: at 'mlx5_0/1' only qp can be limited; write mr for the device 'mlx5_0'"},
        {"version = 1\nprocess = 3", "p.toml:2:11: ", "must be a table"},
        {"version = 1\n[[process]]", "p.toml:2:1: ", "must be a table"},
        {"version = 1\n[tenant.default]\nbypass = \"ignore\"", "p.toml:3:10: ", "can only be \"report\""},
        {"version = 1\n[tenant.default]\nbackstop = \"slurm\"", "p.toml:3:12: ", "path of a cgroup"},
        {"version = 1\n[tenant.default]\nbackstop = \"/slurm/../x\"", "p.toml:3:12: ", "path of a cgroup"},
        {"version = 1\n[tenant]\nqp = 1", "p.toml:3:1: ", "[tenant.default.\"*\"]"},
        {row("qps = 1"), "p.toml:3:1: ", "did you mean 'qp'?"},
        {row("widgets = 1"), "p.toml:3:1: ", "choose one of hca_object"},
        {row("qp = -1"), "p.toml:3:6: ", "write a number"},
        {row("qp = 1.5"), "p.toml:3:6: ", "whole number"},
        {row("qp = true"), "p.toml:3:6: ", "whole number"},
        {row("qp = [1]"), "p.toml:3:6: ", "whole number"},
        {row("qp = 10k"), "p.toml:3:", "must be quoted"},
        {row("qp = 4GiB"), "p.toml:3:", "must be quoted"},
        {row("qp = \"4GiB\""), "p.toml:3:6: ", "write a number"},
        {row("qp = \"\""), "p.toml:3:6: ", "write a number"},
        {row("qp = 4503599627370496"), "p.toml:3:6: ", "too large"},
        {row("mr_bytes = \"5PiB\""), "p.toml:3:12: ", "write a number"},
        {row("qp = 99999999999999999999999"), "p.toml:3:", "too large"},
        {row("qp = 1\nqp = 2"), "p.toml:4:", "twice"},
        {row("qp = 1\n[process.\"*\"]\ncq = 1"), "p.toml:4:1: ", "twice"},
        {row("qp = 1\nqp"), "p.toml:", "syntax error"},
        {"version = 1\n[process.\"*\"\nqp = 1", "p.toml:2:", "syntax error"},
        {"\x7f"
         "ELF\x01\x02",
         "p.toml:1:1: ", "is this a policy file?"},
        {std::string("version = 1\n\0", 13), "p.toml:2:1: ", "is this a policy file?"},
        {"version = 1 # \xff", "p.toml:1:", "UTF-8"},
        {"version = 1\nx = " + std::string(500, '['), "p.toml:2:", "nested too deeply"},
        {"version = 1\n#" + std::string(2000, 'x'), "p.toml:2:1001: ", "too long"},
        {"version = 1\n\xc3\xa9 = 1", "p.toml:2:1: ", "needs quotes"},
        {"version = 1\nmode = \"off\"\xc3\xa9", "p.toml:2:13: ", "needs quotes"},
        {"version = 1\nmode = \"\"\"off\"\"\"", "p.toml:2:8: ", "multi-line"},
        {"version = 1\n[*]", "p.toml:2:2: ", "write \"*\""},
    };
    for (const auto& c : cases) {
        INFO(c.text);
        const auto error = error_of(c.text);
        CHECK_THAT(error, Catch::StartsWith(c.place));
        CHECK_THAT(error, Catch::Contains(c.says));
        CHECK(error.find('\n') == std::string::npos);
    }
}

TEST_CASE("of several errors the first one in the file is told") {
    CHECK_THAT(error_of("version = 1\n[tenant.\"b b\"]\n[process.\"*\"]\nbad = 1\n[log]\nbad = 1\n"),
               Catch::StartsWith("p.toml:2:9: "));
}

TEST_CASE("random bytes and deep dotted keys give errors, not crashes") {
    std::minstd_rand random(1);
    for (int round = 0; round < 500; ++round) {
        std::string text = round % 2 ? "version = 1\n[process.\"*\"]\n" : "";
        for (auto i = random() % 200; i > 0; --i)
            text += round % 4 < 2 ? static_cast<char>(random()) : "[]{}=.\"'\n #abq019,-"[random() % 19];
        (void)parse_policy(text, "p.toml");
    }
    std::string dotted;
    for (int i = 0; i < 200'000; ++i) dotted += "a.";
    CHECK_THAT(error_of(dotted + "b = 1"), Catch::Contains("too long"));
}

TEST_CASE("conf.d files win key by key, in the order of their names") {
    const TemporaryDirectory directory;
    const auto path =
        write(directory, "p.toml", "version = 1\nmode = \"audit\"\n[process.\"*\"]\nqp = 1\ncq = 1\npd = 1\n");
    write(directory, "conf.d/20-b.toml", "[process.\"*\"]\nqp = 3\n");
    write(directory, "conf.d/10-a.toml", "version = 1\n[process.\"*\"]\nqp = 2\ncq = 2\n");
    write(directory, "conf.d/README", "no policy");
    write(directory, "conf.d/.hidden.toml", "no policy");

    const auto policy = read_policy(path);
    REQUIRE(policy);
    CHECK(policy.value().mode == Mode::audit);
    CHECK(limit_in(policy.value().process, "*", Resource::qp) == 3);
    CHECK(limit_in(policy.value().process, "*", Resource::cq) == 2);
    CHECK(limit_in(policy.value().process, "*", Resource::pd) == 1);
}

TEST_CASE("an error in a conf.d file names that file") {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", "version = 1\n");
    const auto fragment = write(directory, "conf.d/10.toml", "[process.\"*\"]\nqp = -1\n");
    const auto policy = read_policy(path);
    REQUIRE_FALSE(policy);
    CHECK_THAT(policy.error(), Catch::StartsWith(fragment + ":2:6: "));
}

TEST_CASE("log target and file must belong together, across files") {
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", "version = 1\n[log]\ntarget = \"file\"\n");
    CHECK_THAT(read_policy(path).error(), Catch::StartsWith(path + ":3:10: "));
    write(directory, "conf.d/10.toml", "[log]\nfile = \"/var/log/q\"\n");
    CHECK(read_policy(path));
    write(directory, "p.toml", "version = 1\n");
    CHECK_THAT(read_policy(path).error(), Catch::Contains("conf.d/10.toml:2:8: "));
}

TEST_CASE("files that cannot be read are errors with a reason") {
    const TemporaryDirectory directory;
    CHECK_THAT(read_policy(directory / "none.toml").error(), Catch::Contains("No such file"));
    CHECK_THAT(read_policy(directory.path()).error(), Catch::Contains("directory"));
    CHECK_THAT(read_policy("/dev/zero").error(), Catch::Contains("larger than 1 MiB"));
}

TEST_CASE("a conf.d of another user is refused") {
    if (::geteuid() != 0) return;
    const TemporaryDirectory directory;
    const auto path = write(directory, "p.toml", "version = 1\n");
    write(directory, "conf.d/10.toml", "");
    REQUIRE(::chown((directory / "conf.d").c_str(), 1234, 1234) == 0);
    CHECK_THAT(read_policy(path).error(), Catch::Contains("1234"));
}

TEST_CASE("a port is a device key") {
    for (const auto* name : {"mlx5_0/1", "rxe0/255", "a:b/2"}) CHECK(valid_device(name));
    for (const auto* name :
         {"mlx5_0/0", "mlx5_0/01", "mlx5_0/256", "mlx5_0/", "/1", "mlx5_0/1/1", "mlx5_0/-1", "total/1"})
        CHECK_FALSE(valid_device(name));
    const auto policy = good("version = 1\n[tenant.default.\"mlx5_0/1\"]\nqp = 3\n");
    CHECK(limit_in(default_limits(policy), "mlx5_0/1", Resource::qp) == 3);
}

TEST_CASE("limits in percent are read, and all stands for what the table does not name") {
    const auto policy = good(R"(
version = 1
[tenant.a."*"]
all = "25%"
cq = 7
mr = { limit = "50%", guarantee = "12.5%", soft = 30 }
)");
    const auto& tenant = *policy.find("a");
    const auto& limits = tenant.limits[index(Scope::tenant)];
    CHECK(limit_in(limits, "*", Resource::qp) == percentage(250));
    CHECK(limit_in(limits, "*", Resource::mr_bytes) == percentage(250));
    CHECK(limit_in(limits, "*", Resource::cq) == 7);
    CHECK(limit_in(limits, "*", Resource::mr) == percentage(500));
    CHECK(limit_in(limits, "*", Resource::send_wr) == unset);
    CHECK(limit_in(tenant.guarantees, "*", Resource::mr) == percentage(125));
    CHECK(limit_in(tenant.softs, "*", Resource::mr) == 30);
    const auto error_in = [](const std::string& line) { return error_of("version = 1\n[tenant.a.\"*\"]\n" + line + "\n"); };
    CHECK_THAT(error_in("all = 25"), Catch::StartsWith("p.toml:3:7: all takes a percentage"));
    CHECK_THAT(error_in("flow = \"1%\""), Catch::StartsWith("p.toml:3:8: flow cannot be limited in percent"));
    CHECK_THAT(error_in("qp = { limit = \"10%\", guarantee = \"20%\" }"), Catch::Contains("the guarantee is above the limit"));
    CHECK_THAT(error_of("version = 1\n[node.total]\nqp = \"1%\"\n"), Catch::Contains("cannot be limited in percent for the sum"));
    CHECK_THAT(error_of("version = 1\n[[dynamic]]\nwatch = \"mr_bytes\"\nlimit = \"mr_bytes\"\nabove = 90\nbelow = 70\n"
                        "factor = 50\nfloor = \"1%\"\n"),
               Catch::Contains("a rule takes amounts"));
}
