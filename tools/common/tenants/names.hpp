// Names of users and groups (NSS). For the tools only: in the provider, NSS would load libraries into the host program.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "policy/tenant.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota {

// A name, or a number, which stands for itself.
std::optional<uid_t> user_id(const std::string& name);
std::optional<gid_t> group_id(const std::string& name);
NameLookup name_lookup();  // of these two
// Whether there is such a user, or such a group for a name with '@' in front.
bool is_known_name(const std::string& name);

// The ids with which a user's processes run after a login.
struct UserIds {
    uid_t user;
    gid_t group;
    std::vector<gid_t> groups;
};
std::optional<UserIds> ids_of_user(const std::string& name);

// For display: the number where there is no name.
std::string user_name(uid_t user);
std::string group_name(gid_t group);
// Who runs a process, by the owner of its directory in /proc; none when it is gone.
std::optional<uid_t> user_of_process(std::uint32_t pid);

// The users whom `match` names by user and group: those that getpwent(3) enumerates, the user whom it names, and the
// members whom the group lists. Sorted, each once. None where the match has a cgroup or a unit: these say nothing of
// users. Directory services may enumerate nobody. Not thread-safe.
std::vector<uid_t> enumerable_users(const Match& match);

// What enumerable_users looks at, apart from NSS.
struct Account {
    std::string name;
    uid_t user;
    gid_t group;  // primary
};
struct Accounts {
    std::vector<Account> enumerated;
    NameLookup ids;
    std::function<std::optional<Account>(uid_t)> account;
    std::function<std::vector<std::string>(gid_t)> members;  // listed by the group
};
std::vector<uid_t> enumerable_users(const Match& match, const Accounts& accounts);

}  // namespace rdmaquota
