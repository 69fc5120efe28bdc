#include <chrono>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "policy/pattern.hpp"
#include "test/waiting.hpp"

using namespace rdmaquota;

namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

// What a match captures; {{"", ""}} when there is none.
Values captured(const std::string& pattern, const std::string& path) {
    Captures captures;
    if (!cgroup_matches(pattern, path, captures)) return {{"", ""}};
    Values values;
    for (std::size_t i = 0; i < captures.count; ++i) values.emplace_back(captures.list[i].name, captures.list[i].value);
    return values;
}

bool matches(const std::string& pattern, const std::string& path) {
    Captures captures;
    return cgroup_matches(pattern, path, captures);
}

// The same pattern for std::regex, whose lazy wildcards take as little as possible, the first one first.
std::string as_regex(const std::string& pattern) {
    std::string expression;
    for (std::size_t i = 0; i < pattern.size(); ++i)
        if (pattern.compare(i, 3, "/**") == 0)
            expression += "(?:/[^/]+)*?", i += 2;
        else if (pattern[i] == '*')
            expression += "[^/]*?";
        else if (pattern[i] == '{')
            expression += "([^/]+?)", i = pattern.find('}', i);
        else
            expression += pattern[i];
    return expression + "(?:/[^/]+)*";
}

std::string random_element(std::minstd_rand& random, const std::vector<std::string>& parts) {
    std::string element;
    for (auto count = 1 + random() % 3; count > 0; --count) element += parts[random() % parts.size()];
    return element;
}

std::string random_pattern(std::minstd_rand& random) {
    std::string pattern;
    char name = 'p';
    for (auto count = 1 + random() % 4; count > 0; --count) {
        pattern += '/';
        if (random() % 3 == 0) {
            pattern += "**";
            continue;
        }
        auto element = random_element(random, {"a", "b", "*", "{"});
        for (std::size_t at = 0; (at = element.find("**")) != element.npos;) element.erase(at, 1);
        for (const char c : element)
            if (c == '{')
                pattern += std::string("{") + name++ + '}';
            else
                pattern += c;
    }
    return pattern;
}

}  // namespace

TEST_CASE("a path pattern matches a path and what is below it") {
    CHECK(matches("/slurm", "/slurm"));
    CHECK(matches("/slurm/job_*", "/slurm/job_7/step_0"));
    CHECK(matches("/slurm/job_*", "/slurm/job_"));
    CHECK(matches("/", "/"));
    CHECK(matches("/", "/a/b"));
    CHECK(matches("/**", "/"));
    CHECK(matches("/slurm/**/job_*", "/slurm/job_1"));
    CHECK(matches("/slurm/**/job_*", "/slurm/a/b/job_1/c"));
    CHECK(matches("/*a*b*", "/xaybz"));
    CHECK_FALSE(matches("/slurm", "/"));
    CHECK_FALSE(matches("/slurm", "/slurmd"));
    CHECK_FALSE(matches("/slurm", "/x/slurm"));
    CHECK_FALSE(matches("/slurm/*/x", "/slurm/x"));
    CHECK_FALSE(matches("/*", "/"));
    CHECK_FALSE(matches("/slurm/**/job_*", "/slurm/a/b"));
    CHECK_FALSE(matches("/a*b", "/a/b"));
    CHECK_FALSE(matches("/slurm", ""));
    CHECK_FALSE(matches("/slurm", "slurm"));
}

TEST_CASE("captures take as little as possible, from the left") {
    CHECK(captured("/slurm/{account}/job-{id}", "/slurm/atlas/job-7/step") ==
          Values{{"account", "atlas"}, {"id", "7"}});
    CHECK(captured("/{a}-{b}", "/x-y-z") == Values{{"a", "x"}, {"b", "y-z"}});
    CHECK(captured("/**/{a}x", "/b/cx/dx") == Values{{"a", "c"}});
    CHECK(captured("/{a}/**/{b}/c", "/1/2/3/c") == Values{{"a", "1"}, {"b", "3"}});
    CHECK(captured("/*{a}", "/xyz") == Values{{"a", "xyz"}});
    CHECK(captured("/job_{id}", "/job_") == Values{{"", ""}});
    // What was captured in an attempt that failed is gone.
    CHECK(captured("/**/{a}/{b}x/c", "/1/2x/3x/c") == Values{{"a", "2x"}, {"b", "3"}});
}

TEST_CASE("patterns agree with regular expressions on random texts") {
    std::minstd_rand random(1);
    int matched = 0;
    for (int round = 0; round < 4'000; ++round) {
        const auto pattern = random_pattern(random);
        std::string path;
        for (auto count = random() % 5; count > 0; --count) path += '/' + random_element(random, {"a", "b", "ab"});
        if (path.empty()) path = "/";
        std::smatch groups;
        const auto text = path == "/" ? std::string() : path;  // whose root has no element
        const bool expected = std::regex_match(text, groups, std::regex(as_regex(pattern)));
        Values values{{"", ""}};
        if (expected) values.clear();
        for (std::size_t i = 1; expected && i < groups.size(); ++i)
            values.emplace_back(std::string(1, static_cast<char>('p' + i - 1)), groups[i].str());
        INFO(pattern << " on " << path);
        REQUIRE(check_cgroup_pattern(pattern));
        REQUIRE(captured(pattern, path) == values);
        matched += expected;
    }
    CHECK(matched > 400);
}

TEST_CASE("a pattern of many wildcards takes no long time") {
    std::string pattern, path;
    while (pattern.size() < 240) pattern += "/**/*a*a*b";
    while (path.size() < 4000) path += "/aaaaaaaaaaaaaaaaaaaaaaaaa";
    const auto start = cpu_seconds();
    CHECK_FALSE(matches(pattern, path));
    CHECK(cpu_seconds() - start < 1);
}

TEST_CASE("a pattern that was not checked crashes nothing") {
    for (const std::string pattern : {"", "a", "/{", "/{}", "/}", "//", "/a//", "/{a/b}", "/{{a}", "/***", "/**/"})
        (void)matches(pattern, "/a/b{/}");
    std::string many;
    for (int i = 0; i < 20; ++i) many += "/{a}";
    CHECK(captured(many, many).size() == most_captures);
    CHECK_FALSE(reaches_into_users(std::string(5000, '/')));
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += "/*";
    CHECK(reaches_into_users(deep));
}

TEST_CASE("a wrong pattern is refused with the reason") {
    struct Case {
        std::string pattern, says;
    };
    const Case cgroups[] = {
        {"", "it must begin with '/'"},
        {"slurm", "'slurm' is no pattern for a cgroup: it must begin with '/'"},
        {"/" + std::string(255, 'x'), "longer than 255 bytes"},
        {"/a\nb", "control character"},
        {"//a", "a part of it is empty"},
        {"/a/", "a part of it is empty"},
        {"/a/../b", "'..' are not possible"},
        {"/.", "'..' are not possible"},
        {"/a**", "** must stand alone"},
        {"/***", "** must stand alone"},
        {"/{a", "do not fit together"},
        {"/a}", "do not fit together"},
        {"/{A}", "'{A}' has no name"},
        {"/{user}", "{user} is the effective user"},
        {"/{a}/{b}/{a}", "{a} is in it twice"},
        {"/{a}{b}{c}{d}{e}{f}{g}{h}{i}", "more than 8 names"},
    };
    for (const auto& c : cgroups) {
        const auto result = check_cgroup_pattern(c.pattern);
        INFO(c.pattern);
        REQUIRE_FALSE(result);
        CHECK_THAT(result.error(), Catch::Contains(c.says));
    }
    const Case units[] = {
        {"", "it must end in .service"},
        {"slurmd", "'slurmd' is no pattern for a unit: it must end in .service"},
        {".service", "it must end in .service"},
        {"a/b.service", "write cgroup"},
        {"{a}.service", "write cgroup"},
        {std::string(255, 'x') + "*", "longer than 255 bytes"},
    };
    for (const auto& c : units) {
        const auto result = check_unit_pattern(c.pattern);
        INFO(c.pattern);
        REQUIRE_FALSE(result);
        CHECK_THAT(result.error(), Catch::Contains(c.says));
    }
    CHECK(check_cgroup_pattern("/"));
    CHECK(check_cgroup_pattern("/{a}{b}{c}{d}{e}{f}{g}{h}/**/*"));
    for (const auto* unit : {"slurmd.service", "slurm*", "*.slice", "init.scope", "x.socket"})
        CHECK(check_unit_pattern(unit));
}

TEST_CASE("a unit is the first element that is no slice") {
    const std::string path = "/user.slice/user-1000.slice/user@1000.service/app.slice/game.service";
    CHECK(unit_matches("user@1000.service", path));
    CHECK(unit_matches("user@*", path));
    CHECK(unit_matches("user.slice", path));
    CHECK(unit_matches("user-*.slice", path));
    CHECK_FALSE(unit_matches("app.slice", path));
    CHECK_FALSE(unit_matches("game.service", path));
    CHECK_FALSE(unit_matches("user.slice*", path));
    CHECK_FALSE(unit_matches("user*", "/user.slice/x.scope"));
    CHECK(unit_matches("slurmd.service", "/system.slice/slurmd.service/step"));
    CHECK(unit_matches("*", "/init.scope"));
    CHECK_FALSE(unit_matches("*", "/"));
    CHECK_FALSE(unit_matches("*", "/system.slice"));
    CHECK_FALSE(unit_matches("*", ""));
}

TEST_CASE("patterns that let users choose") {
    for (const std::string pattern :
         {"/**/job_*", "/user.slice/**/x.service", "/user.slice/user-1000.slice/user@1000.service",
          "/user.slice/user-*.slice/user@*.service/app.slice", "/*/*/*/{x}", "/user.slice/user-{id}.slice/**/job",
          "/**/user-1000.slice", "/user.slice/user-1*0.slice/*/x", "/**/user@1000.service"}) {
        INFO(pattern);
        CHECK(reaches_into_users(pattern));
    }
    for (const std::string pattern : {"/slurm/**/job_*", "/", "/**", "/user.slice", "/user.slice/user-1000.slice",
                                      "/user.slice/user-*.slice", "/user.slice/user-1000.slice/session-1.scope",
                                      "/*/*/x", "/system.slice/**", "/user.slice/user-a.slice/x/y"}) {
        INFO(pattern);
        CHECK_FALSE(reaches_into_users(pattern));
    }
}

TEST_CASE("the unit of a path") {
    CHECK(unit_of("/system.slice/nfsd.service") == "nfsd.service");
    CHECK(unit_of("/a.slice/a-b.slice/db@1.service/inner.service") == "db@1.service");
    CHECK(unit_of("/user.slice/user-0.slice/session-3.scope") == "session-3.scope");
    for (const auto* path : {"", "/", "/system.slice", "/slurm/nfsd.service", "/.service"})
        CHECK(unit_of(path).empty());
}
