#include "tools/common/tenants/names.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace rdmaquota {
namespace {

std::optional<std::uint32_t> as_number(const std::string& text) {
    std::uint32_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    // The last number stands for "no id" in system calls.
    return error == std::errc() && stop == end && number != UINT32_MAX ? std::optional(number) : std::nullopt;
}

constexpr std::size_t most_bytes = std::size_t{16} << 20;  // of an entry: groups can have very many members

// Calls one of the get…_r functions, with more room as long as it asks for that, and gives the entry to `use`. What
// `use` returns, or a default value where there is no entry.
template <class Entry, class Call, class Use>
auto with_entry(Call call, Use use) -> decltype(use(Entry{})) {
    std::vector<char> room(4096);
    for (;;) {
        Entry entry{};
        Entry* found = nullptr;
        const int error = call(&entry, room.data(), room.size(), &found);
        if (error == ERANGE && room.size() < most_bytes)
            room.resize(room.size() * 4);
        else if (error != EINTR)
            return error == 0 && found ? use(*found) : decltype(use(Entry{})){};
    }
}

Account account_of(const passwd& entry) { return {entry.pw_name, entry.pw_uid, entry.pw_gid}; }

std::optional<Account> account(uid_t user) {
    return with_entry<passwd>([&](auto... room) { return getpwuid_r(user, room...); },
                              [](const passwd& entry) { return std::optional(account_of(entry)); });
}

std::vector<std::string> members(gid_t group) {
    return with_entry<struct group>([&](auto... room) { return getgrgid_r(group, room...); },
                                    [](const struct group& entry) {
                                        std::vector<std::string> names;
                                        for (char** name = entry.gr_mem; *name; ++name) names.emplace_back(*name);
                                        return names;
                                    });
}

std::vector<Account> enumerated_accounts() {
    std::vector<Account> accounts;
    setpwent();
    while (auto next = with_entry<passwd>([](auto... room) { return getpwent_r(room...); },
                                          [](const passwd& entry) { return std::optional(account_of(entry)); }))
        accounts.push_back(std::move(*next));
    endpwent();
    return accounts;
}

// The users who may satisfy `match`, as far as they can be found.
std::vector<Account> candidates(const Match& match, const Accounts& accounts, const std::vector<std::string>& members) {
    std::vector<Account> result;
    const auto add = [&](const std::string& name) {
        const auto user = accounts.ids.user(name);
        if (!user) return;
        const auto known = accounts.account(*user);
        result.push_back(known ? *known : Account{"", *user, static_cast<gid_t>(-1)});
    };
    if (!match.user.empty()) {
        add(match.user);
        return result;
    }
    result = accounts.enumerated;
    for (const auto& member : members) add(member);
    return result;
}

}  // namespace

std::optional<uid_t> user_id(const std::string& name) {
    if (const auto number = as_number(name)) return number;
    return with_entry<passwd>([&](auto... room) { return getpwnam_r(name.c_str(), room...); },
                              [](const passwd& entry) { return std::optional(entry.pw_uid); });
}

std::optional<gid_t> group_id(const std::string& name) {
    if (const auto number = as_number(name)) return number;
    return with_entry<struct group>([&](auto... room) { return getgrnam_r(name.c_str(), room...); },
                                    [](const struct group& entry) { return std::optional(entry.gr_gid); });
}

bool is_known_name(const std::string& name) {
    return name.starts_with('@') ? group_id(name.substr(1)).has_value() : user_id(name).has_value();
}

NameLookup name_lookup() { return {user_id, group_id}; }

std::optional<UserIds> ids_of_user(const std::string& name) {
    const auto id = user_id(name);
    const auto known = id ? account(*id) : std::nullopt;
    if (!known) return std::nullopt;
    UserIds ids{known->user, known->group, std::vector<gid_t>(64)};
    int count = static_cast<int>(ids.groups.size());
    while (getgrouplist(known->name.c_str(), known->group, ids.groups.data(), &count) < 0)
        ids.groups.resize(static_cast<std::size_t>(count));
    ids.groups.resize(static_cast<std::size_t>(count));
    return ids;
}

std::string user_name(uid_t user) {
    const auto known = account(user);
    return known ? known->name : fmt::format_int(user).str();
}

std::string group_name(gid_t group) {
    const auto name = with_entry<struct group>([&](auto... room) { return getgrgid_r(group, room...); },
                                               [](const struct group& entry) { return std::string(entry.gr_name); });
    return name.empty() ? fmt::format_int(group).str() : name;
}

std::optional<uid_t> user_of_process(std::uint32_t pid) {
    struct stat status {};
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) return std::nullopt;
    return status.st_uid;
}

std::vector<uid_t> enumerable_users(const Match& match, const Accounts& accounts) {
    if (!match.cgroup.empty() || !match.unit.empty()) return {};
    std::optional<gid_t> group;
    if (!match.group.empty() && !(group = accounts.ids.group(match.group))) return {};
    auto listed = group ? accounts.members(*group) : std::vector<std::string>{};
    std::sort(listed.begin(), listed.end());
    std::vector<uid_t> users;
    for (const auto& one : candidates(match, accounts, listed))
        if (!group || one.group == *group || std::binary_search(listed.begin(), listed.end(), one.name))
            users.push_back(one.user);
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
}

std::vector<uid_t> enumerable_users(const Match& match) {
    const bool names_one = !match.user.empty() || !match.cgroup.empty() || !match.unit.empty();
    return enumerable_users(
        match, {names_one ? std::vector<Account>{} : enumerated_accounts(), name_lookup(), account, members});
}

}  // namespace rdmaquota
