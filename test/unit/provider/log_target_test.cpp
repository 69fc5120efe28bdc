#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include <unistd.h>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

ibv_pd* no_pd(ibv_context*) { return nullptr; }

TenantLimits logging_to(const std::string& file) {
    TenantLimits policy;
    policy.log_target = LogTarget::file;
    policy.log_file = file;
    row_for(policy.limits[index(Scope::tenant)], "*")[index(Resource::pd)] = 0;
    return policy;
}

std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("a denial logs where the mapped policy says, whatever lies at its path since") {
    wait_until_lines_are_admitted();
    const TemporaryDirectory logs;
    WrappedContext context(logging_to(logs.path() + "/first"));
    REQUIRE(unlink(limits_path(context.directory.path()).c_str()) == 0);
    CHECK_FALSE(context.wrapped(Op::alloc_pd, no_pd)(&context.verbs));
    CHECK(text_of(logs.path() + "/first").find("rdmaquota: pd on fake0 denied (EDQUOT)") == 0);
}

TEST_CASE("a denial after a reload logs where the new policy says") {
    wait_until_lines_are_admitted();
    const TemporaryDirectory logs;
    WrappedContext context(logging_to(logs.path() + "/first"));
    REQUIRE(LimitsWriter::publish(limits_path(context.directory.path()), logging_to(logs.path() + "/second")));
    CHECK_FALSE(context.wrapped(Op::alloc_pd, no_pd)(&context.verbs));
    CHECK(text_of(logs.path() + "/first").empty());
    CHECK(text_of(logs.path() + "/second").find("rdmaquota: pd on fake0 denied (EDQUOT)") == 0);
}
