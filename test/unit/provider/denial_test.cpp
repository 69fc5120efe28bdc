#include <catch2/catch.hpp>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "provider/charging/denial.hpp"
#include "provider/charging/repeats.hpp"
#include <stdexcept>

#include <sys/prctl.h>
#include <unistd.h>

#include "shm/paths.hpp"
#include "test/processes.hpp"
#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

const Identity who{123, 0, 0, "perftest"};

std::string line(const Denial& denial, Mode mode = Mode::enforce, const std::string& directory = system_directory,
                 const std::string& tenant = "default", Reason reason = Reason::configured) {
    return denial_line("rxe0", denial, mode, EDQUOT, {directory, tenant, reason}, who);
}

// As another than an administrator reads it.
std::string advice(const Denial& denial, Circumstances found) {
    found.may_change = false;
    return remedy("rxe0", denial, found);
}

constexpr Denial third_qp{Resource::qp, Scope::tenant, false, 2, 2, 1, true};

}  // namespace

TEST_CASE("a denial says what, where, who, how much, and what allows it") {
    CHECK(line({Resource::qp, Scope::tenant, false, 2, 2, 1, true}) ==
          "qp on rxe0 denied (EDQUOT): tenant default uses 2 of 2, 1 more asked by pid 123 (perftest); "
          "to allow it: rdmaquota set rxe0 qp=3");
    CHECK(line({Resource::mr_bytes, Scope::process, false, 4096, 8192, 8192, true}) ==
          "mr_bytes on rxe0 denied (EDQUOT): this process uses 4 KiB of 8 KiB, 8 KiB more asked by pid 123 (perftest); "
          "to allow it: rdmaquota set default rxe0 mr_bytes=12KiB --process");
    CHECK(line({Resource::pd, Scope::tenant, true, 3, 3, 1, true}) ==
          "pd on rxe0 denied (EDQUOT): tenant default uses 3 of 3 over all devices, 1 more asked by "
          "pid 123 (perftest); to allow it: rdmaquota set total pd=4");
}

TEST_CASE("amounts are told in bytes where rounded ones would look as if the request fitted") {
    constexpr std::uint64_t mib = 1 << 20;
    CHECK_THAT(line({Resource::mr_bytes, Scope::tenant, false, mib + 8, 2 * mib, mib, true}),
               Catch::Contains("uses 1048584 bytes of 2 MiB, 1 MiB more asked"));
    CHECK_THAT(line({Resource::mr_bytes, Scope::tenant, false, 3 * mib, 4 * mib, 2 * mib, true}),
               Catch::Contains("uses 3 MiB of 4 MiB, 2 MiB more asked"));
}

TEST_CASE("a process is told by its name where /proc cannot be read") {
    const TemporaryDirectory root;
    ChildProcess child([&] {
        if (::chroot(root.path().c_str()) != 0) return;  // needs root
        ::prctl(PR_SET_NAME, "hidden");
        if (identity_of_self().comm != "hidden") throw std::runtime_error("no name");
    });
    CHECK(child.wait() == 0);
}

TEST_CASE("audit, other directories and unproved denials are named") {
    CHECK_THAT(line({Resource::qp, Scope::tenant, false, 2, 2, 1, true}, Mode::audit),
               Catch::StartsWith("qp on rxe0 would be denied (audit): "));
    CHECK_THAT(line({Resource::qp, Scope::process, false, 2, 2, 1, true}, Mode::enforce, "/tmp/q"),
               Catch::EndsWith("to allow it: rdmaquota --dir /tmp/q set default rxe0 qp=3 --process"));
    CHECK_THAT(line({Resource::qp, Scope::tenant, false, 2, 2, 1, false}),
               Catch::EndsWith("(the ledger was too busy to prove it)"));
}

TEST_CASE("a denial names the tenant, and how to change its limits") {
    CHECK(line(third_qp, Mode::enforce, system_directory, "physics/atlas") ==
          "qp on rxe0 denied (EDQUOT): tenant physics/atlas uses 2 of 2, 1 more asked by pid 123 (perftest); "
          "to allow it: rdmaquota set physics/atlas rxe0 qp=3");
    CHECK_THAT(line({Resource::qp, Scope::process, false, 2, 2, 1, true}, Mode::enforce, system_directory, "blue"),
               Catch::EndsWith("to allow it: rdmaquota set blue rxe0 qp=3 --process"));
}

TEST_CASE("a limit that a reason holds is not to be set, and the line says what holds it") {
    const auto of = [](Reason reason) { return line(third_qp, Mode::enforce, system_directory, "default", reason); };
    CHECK_THAT(of(Reason::rule),
               Catch::EndsWith("; a dynamic rule sets this limit at present; the rule is in the policy file"));
    CHECK_THAT(of(Reason::other), Catch::Contains("lower than configured at present"));
    CHECK_THAT(of(Reason::rule), !Catch::Contains("rdmaquota set"));
    CHECK_THAT(of(Reason::soft), Catch::EndsWith("this soft limit has been exceeded for longer than the grace period; "
                                                 "to allow it: rdmaquota set rxe0 qp=3 --soft"));
}

TEST_CASE("a denial names the rule, the share and what is above it, and the set or unset that helps") {
    Circumstances found{system_directory, "physics/atlas", Reason::rule,
                        "[[dynamic]] rule 2: mr_bytes at 93 % of 1 GiB"};
    CHECK_THAT(remedy("rxe0", third_qp, found),
               Catch::Contains("at present ([[dynamic]] rule 2: mr_bytes at 93 % of 1 GiB); the rule"));
    found = {system_directory, "physics/atlas", Reason::grant, {}, {}, 0, "physics", 10};
    CHECK(remedy("rxe0", {Resource::qp, Scope::tenant, false, 6, 4, 1, true}, found) ==
          "that is its share of what physics may use, and other tenants have the rest; it has 2 more than its share; to allow it: "
          "rdmaquota set physics rxe0 qp=13, or to reserve it: rdmaquota set physics/atlas rxe0 qp=7 --guarantee");
    found = {system_directory, "blue", Reason::configured, {}, "*", 10};
    CHECK(remedy("rxe0", third_qp, found) == "to allow it: rdmaquota unset blue '*' qp");
    found.of_file = 2;  // would not help
    CHECK(remedy("rxe0", third_qp, found) == "to allow it: rdmaquota set blue rxe0 qp=3");
}

TEST_CASE("who may not change limits is told what is left to do, and what to ask for") {
    Circumstances found{system_directory, "user/alice"};
    found.own = 2;
    CHECK(advice(third_qp, found) == "this process has 2 of it: destroy what it no longer needs; "
                                     "an administrator can allow it with: rdmaquota set user/alice rxe0 qp=3");
    found.own = 0;
    CHECK_THAT(advice(third_qp, found),
               Catch::StartsWith("this process has none of it; other processes of the tenant have all; an administrator"));
    CHECK_THAT(advice({Resource::qp, Scope::tenant, false, 0, 2, 3, true}, found),
               Catch::StartsWith("the request alone is larger than the limit; an administrator can allow it with: "));
    CHECK_THAT(advice({Resource::qp, Scope::process, false, 2, 2, 1, true}, found),
               Catch::StartsWith("destroy what this process no longer needs; an administrator can allow it with: "));
    found.reason = Reason::rule;
    CHECK_THAT(advice(third_qp, found), !Catch::Contains("rdmaquota set"));
}

TEST_CASE("a denial by a limit that is held names the reason, in the tenant's own words") {
    wait_until_lines_are_admitted();
    const TemporaryDirectory logs;
    TenantLimits limits;
    limits.tenant = "physics/atlas";
    limits.log_target = LogTarget::file;
    limits.log_file = logs / "log";
    row_for(limits.limits[index(Scope::tenant)], "*")[index(Resource::pd)] = 5;
    WrappedContext context(limits);
    const auto path = limits_path(context.directory.path());
    const auto change = [&](auto make) {
        auto writer = LimitsWriter::open(path);
        REQUIRE(writer);
        make(*writer);
    };
    const auto denied = [&] {
        std::ofstream(logs / "log").close();
        CHECK_FALSE(context.wrapped(Op::alloc_pd, +[](ibv_context*) -> ibv_pd* { return nullptr; })(&context.verbs));
        CHECK(errno == EDQUOT);
        std::ostringstream text;
        text << std::ifstream(logs / "log").rdbuf();
        return text.str();
    };
    change([](LimitsWriter& writer) { REQUIRE(writer.hold(Scope::tenant, "*", Resource::pd, 0, Reason::rule, "")); });
    CHECK_THAT(denied(), Catch::Contains("tenant physics/atlas uses 0 of 0") && Catch::Contains("a dynamic rule sets"));
    change([](LimitsWriter& writer) {
        writer.release(Scope::tenant, "*", Resource::pd);
        REQUIRE(writer.set(Scope::tenant, "fake0", Resource::pd, 0));
    });
    CHECK_THAT(denied(), Catch::EndsWith("to allow it: rdmaquota --dir " + context.directory.path() +
                                         " unset physics/atlas fake0 pd\n"));
}

TEST_CASE("a retry loop is one event with a count, and one line until something changes") {
    wait_until_lines_are_admitted();
    const TemporaryDirectory logs;
    TenantLimits limits;
    limits.log_target = LogTarget::file;
    limits.log_file = logs / "log";
    row_for(limits.limits[index(Scope::tenant)], "*")[index(Resource::pd)] = 0;
    {
        WrappedContext context(limits);
        const auto denied = context.wrapped(Op::alloc_pd, +[](ibv_context*) -> ibv_pd* { return nullptr; });
        for (int i = 0; i < 2000; ++i) CHECK_FALSE(denied(&context.verbs));
        const auto ledger = Ledger::open(ledger_path(context.directory.path()));
        REQUIRE(ledger);
        const auto events = ledger->events();
        REQUIRE(events.size() == 1);
        CHECK(events.front().second.count == 2000);
        CHECK(events.front().second.first_time_ns <= events.front().second.time_ns);
        CHECK(events.front().second.first_time_ns != 0);
    }
    std::ostringstream text;
    text << std::ifstream(logs / "log").rdbuf();
    const auto log = text.str();
    CHECK(std::count(log.begin(), log.end(), '\n') == 2);
    CHECK_THAT(log,
               Catch::EndsWith(
                   "rdmaquota: 1999 more suppressed, of denials like the last ones; rdmaquota events counts them\n"));
}

TEST_CASE("after ten seconds a retry loop logs a line again, with how many were suppressed") {
    WrappedContext context;
    auto ledger = Ledger::open(ledger_path(context.directory.path()));
    REQUIRE(ledger);
    Event event{};
    event.kind = EventKind::denied;
    event.pid = 123;
    event.limit = 2;
    const auto say = [&](std::uint64_t now_s) {
        const auto recorded = record_or_repeat(*ledger, 7, event, now_s);
        return std::pair(recorded.say, recorded.kept_back);
    };
    using Said = std::pair<bool, std::uint32_t>;
    CHECK(say(1000) == Said{true, 0});
    CHECK(say(1000) == Said{false, 0});
    CHECK(say(1009) == Said{false, 0});
    CHECK(say(1010) == Said{true, 2});
    CHECK(say(1011) == Said{false, 0});
    event.limit = 3;  // somebody changed it
    CHECK(say(1012) == Said{true, 1});
    CHECK_THAT(denial_line("rxe0", third_qp, Mode::enforce, EDQUOT, {system_directory, "default"}, who, 2),
               Catch::EndsWith("rdmaquota set rxe0 qp=3; 2 more suppressed since the last line like it"));
}

TEST_CASE("at the level info a line says that limits hold, for whom and where they come from; debug says which") {
    wait_until_lines_are_admitted();
    const TemporaryDirectory logs;
    TenantLimits limits;
    limits.tenant = "physics/atlas";
    limits.log_target = LogTarget::file;
    limits.log_file = logs / "log";
    limits.log_level = LogLevel::debug;
    row_for(limits.limits[index(Scope::tenant)], "*")[index(Resource::pd)] = 5;
    const WrappedContext context(limits);
    std::ostringstream text;
    text << std::ifstream(logs / "log").rdbuf();
    CHECK_THAT(text.str(), Catch::Contains("mode enforce: tenant physics/atlas (the directory is its own), limits from " +
                                           limits_path(context.directory.path()) + "\n"));
    CHECK_THAT(text.str(), Catch::Contains("fake0 is opened in tenant physics/atlas: pd 5\n"));
}
