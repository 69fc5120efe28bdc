#include "tools/common/tenants/names.hpp"

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

using namespace rdmaquota;

namespace {

using Users = std::vector<uid_t>;

// alice and bob are enumerated, carol is not; atlas lists bob and carol.
Accounts accounts() {
    static const std::map<std::string, Account> known{
        {"alice", {"alice", 1000, 100}}, {"bob", {"bob", 1001, 101}}, {"carol", {"carol", 1002, 100}}};
    Accounts accounts;
    accounts.enumerated = {known.at("bob"), known.at("alice")};
    accounts.ids.user = [](const std::string& name) -> std::optional<uid_t> {
        if (name == "4000") return uid_t{4000};  // a number without an account
        return known.count(name) ? std::optional(known.at(name).user) : std::nullopt;
    };
    accounts.ids.group = [](const std::string& name) -> std::optional<gid_t> {
        if (name == "users") return gid_t{100};
        return name == "atlas" ? std::optional(gid_t{2000}) : std::nullopt;
    };
    accounts.account = [](uid_t user) -> std::optional<Account> {
        for (const auto& [name, account] : known)
            if (account.user == user) return account;
        return std::nullopt;
    };
    accounts.members = [](gid_t group) {
        return group == 2000 ? std::vector<std::string>{"carol", "bob", "nobody-known"} : std::vector<std::string>{};
    };
    return accounts;
}

Users users_of(std::string user, std::string group) {
    return enumerable_users({std::move(user), std::move(group), {}, {}, {}}, accounts());
}

}  // namespace

TEST_CASE("a user has a name and a number") {
    CHECK(user_id("root") == uid_t{0});
    CHECK(user_name(0) == "root");
    CHECK(user_id("1000") == uid_t{1000});
    CHECK_FALSE(user_id("no-such-user"));
    CHECK_FALSE(user_id(""));
    CHECK_FALSE(user_id("-1"));
    CHECK_FALSE(user_id("4294967295"));
    CHECK_FALSE(user_id("4294967296"));
    CHECK_FALSE(user_id("0x10"));
    CHECK(user_name(4200000000) == "4200000000");
}

TEST_CASE("a group has a name and a number") {
    CHECK(group_id("root") == gid_t{0});
    CHECK(group_name(0) == "root");
    CHECK(group_id("1000") == gid_t{1000});
    CHECK_FALSE(group_id("no-such-group"));
    CHECK(group_name(4200000000) == "4200000000");
    const auto lookup = name_lookup();
    CHECK(lookup.user("root") == uid_t{0});
    CHECK(lookup.group("root") == gid_t{0});
}

TEST_CASE("the users of a match by group have it as their own or are its members") {
    CHECK(users_of("", "users") == Users{1000});
    CHECK(users_of("", "atlas") == Users{1001, 1002});
    CHECK(users_of("", "no-such-group").empty());
}

TEST_CASE("the users of a match by user are that one") {
    CHECK(users_of("alice", "") == Users{1000});
    CHECK(users_of("carol", "") == Users{1002});
    CHECK(users_of("4000", "") == Users{4000});
    CHECK(users_of("no-such-user", "").empty());
}

TEST_CASE("the users of a match by both satisfy both") {
    CHECK(users_of("bob", "atlas") == Users{1001});
    CHECK(users_of("carol", "users") == Users{1002});
    CHECK(users_of("alice", "atlas").empty());
    CHECK(users_of("4000", "users").empty());
}

TEST_CASE("the users of a match by neither are all that are enumerated") {
    CHECK(users_of("", "") == Users{1000, 1001});
}

TEST_CASE("a match by cgroup or unit says nothing of users") {
    CHECK(enumerable_users({"alice", {}, "/slurm", {}, {}}, accounts()).empty());
    CHECK(enumerable_users({{}, "users", {}, "*.service", {}}, accounts()).empty());
}

TEST_CASE("the node's own users are enumerated") {
    const auto all = enumerable_users(Match{});
    CHECK(std::is_sorted(all.begin(), all.end()));
    CHECK(std::binary_search(all.begin(), all.end(), uid_t{0}));
    CHECK(enumerable_users({{}, "root", {}, {}, {}}).front() == 0);
    CHECK(enumerable_users({"root", {}, {}, {}, {}}) == Users{0});
}
