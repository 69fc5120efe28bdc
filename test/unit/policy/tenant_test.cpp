#include <string>

#include <catch2/catch.hpp>

#include "policy/limit_key.hpp"
#include "policy/tenant.hpp"

using namespace rdmaquota;

namespace {

std::string problem(const std::string& name) {
    const auto good = is_template(name) ? check_template_name(name) : check_tenant_name(name);
    return good ? "" : good.error();
}

}  // namespace

TEST_CASE("names of tenants and templates") {
    for (const std::string name : {"default", "physics", "physics/atlas", "a/b/c", "user/nodejs", "A_.:@-\\9", "nodes", "1/2/3/4/5/6/7/8/9/10",
                                   "user/{user}", "{user}", "slurm/{account}/job-{id}", "{user}/{a_1}{b}"}) {
        INFO(name);
        CHECK(problem(name).empty());
    }
    CHECK(problem(std::string(127, 'x')).empty());
}

TEST_CASE("a wrong name of a tenant is refused with the reason") {
    struct Case {
        std::string name, says;
    };
    const Case cases[] = {
        {"", "'' is no tenant name: it has an empty part"},
        {"/a", "empty part"},
        {"a//b", "empty part"},
        {"a/", "empty part"},
        {".a", "begin with '.' or '-'"},
        {"a/..", "begin with '.' or '-'"},
        {"-{x}", "begin with '.' or '-'"},
        {"a b", "' ' is not possible"},
        {"a+b", "'+' is not possible"},
        {"a/#1000", "'#' is not possible"},
        {"a\nb", "'a\\x0ab' is no tenant name: '\\x0a' is not possible"},
        {"a*{x}", "'*' is not possible"},
        {std::string(128, 'x'), "longer than 127 bytes"},
        {std::string(128, 'x') + "{y}", "longer than 127 bytes"},
        {"1/2/3/4/5/6/7/8/9/10/11", "more than 10 parts"},
        {"1/2/3/4/5/6/7/8/9/10/{user}", "more than 10 parts"},
        {"node", "write its limits below [node.\"*\"]"},
        {"node/a", "[node.\"*\"]"},
        {"default/a", "no tenant lies below it"},
        {"{a", "do not fit together"},
        {"{a}}", "do not fit together"},
        {"{{a}}", "do not fit together"},
        {"{}", "'{}' has no name of a-z"},
        {"{A}", "'{A}' has no name of a-z"},
        {"x-{user}", "{user} must stand alone"},
        {"a/{user}x/b", "{user} must stand alone"},
        {"{user}/{user}", "{user} is in it twice"},
        {"default/{user}", "no tenant lies below it"},
    };
    for (const auto& c : cases) {
        INFO(c.name);
        CHECK_THAT(problem(c.name), Catch::Contains(c.says));
    }
    CHECK_FALSE(check_tenant_name("{user}"));
    CHECK_FALSE(check_template_name("physics"));
}

TEST_CASE("parents and users in the tree of tenants") {
    CHECK(parent_of("physics") == node_tenant);
    CHECK(parent_of("default") == node_tenant);
    CHECK(parent_of("physics/atlas") == "physics");
    CHECK(parent_of("a/b/c") == "a/b");
    CHECK(is_below("a/b/c", "a"));
    CHECK(is_below("a/b/c", "a/b"));
    CHECK(is_below("a", node_tenant));
    CHECK(!is_below(node_tenant, node_tenant));
    CHECK(!is_below("a/b", "a/b"));
    CHECK(!is_below("ab", "a"));
    CHECK(!is_below("a", "a/b"));
    CHECK(user_element(0) == "#0");
    CHECK(user_element(4294967294) == "#4294967294");
}

TEST_CASE("instances of a template") {
    CHECK(is_instance("user/#1000", "user/{user}"));
    CHECK(is_instance("slurm/atlas/job-7", "slurm/{account}/job-{id}"));
    CHECK(is_instance("physics", "physics"));
    CHECK_FALSE(is_instance("slurm/atlas", "slurm/{account}/{job}"));
    CHECK_FALSE(is_instance("slurm/atlas/7/8", "slurm/{account}/{job}"));
    CHECK_FALSE(is_instance("slurm/atlas/job-", "slurm/{account}/job-{id}"));
    CHECK_FALSE(is_instance("other/#1000", "user/{user}"));
    CHECK_FALSE(is_instance("physics/atlas", "physics"));
}

TEST_CASE("the holder of a limit in words") {
    CHECK(holder_of({"physics/atlas", Scope::tenant, "*", Resource::qp}) == "tenant physics/atlas");
    CHECK(holder_of({"physics", Scope::process, "*", Resource::qp}) == "each process of tenant physics");
    CHECK(holder_of({"", Scope::process, "*", Resource::qp}) == "each process");
    CHECK(holder_of({"node", Scope::tenant, "*", Resource::qp}) == "the node");
}
