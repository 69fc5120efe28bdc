#include "policy/file/match_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "policy/braces.hpp"
#include "policy/pattern.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint32_t largest_id = UINT32_MAX - 1;  // (uid_t)-1 is nobody's
constexpr std::string_view everyone = "*";

std::vector<std::string_view> names_in_braces(std::string_view text) {
    std::vector<std::string_view> names;
    for (auto braces = take_braces(text); braces && braces.value(); braces = take_braces(text))
        names.push_back(braces.value()->name);
    return names;
}

// Whether `text` can be the name of a user or group, or a number of one.
bool valid_identity(std::string_view text) {
    const auto unfit = [](char c) {
        return static_cast<unsigned char>(c) < ' ' || std::string_view("\x7f:/,*{}").find(c) != std::string_view::npos;
    };
    if (text.empty() || text[0] == '@' || std::any_of(text.begin(), text.end(), unfit)) return false;
    if (text.find_first_not_of("0123456789") != text.npos) return true;
    std::uint32_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc{} && number <= largest_id;
}

class EntryReader {
public:
    EntryReader(TableReader& reader, std::string_view tenant, const toml::table& table,
                std::vector<std::string>& warnings)
        : reader_(reader), tenant_(tenant), table_(table), warnings_(warnings) {}

    Match read() {
        for (const auto& [key, node] : table_) entry(key, node);
        if (known_) {
            asks_for_something();
            captures();
        }
        if (names_everyone_ && match_.members.empty() && !(match_ == Match{})) match_.members.emplace_back(everyone);
        warn();
        return match_;
    }

private:
    void entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 5> known{"user", "group", "cgroup", "unit", "members"};
        if (key == "user" || key == "group") return identity(key, node, key == "user" ? match_.user : match_.group);
        if (key == "cgroup") return pattern(key, node, check_cgroup_pattern, match_.cgroup);
        if (key == "unit") return pattern(key, node, check_unit_pattern, match_.unit);
        if (key == "members") return members(key, node);
        reader_.unknown("key in match", key, known);
        known_ = false;
    }

    void identity(const toml::key& key, const toml::node& node, std::string& into) {
        auto text = text_of(node);
        if (key == "user" && text == everyone) {
            names_everyone_ = true;
            return;
        }
        if (valid_identity(text))
            into = std::move(text);
        else
            reader_.fail(node, fmt::format("{0} must be the name or number of one {0}, such as {1}", key.str(),
                                           key == "user" ? "\"alice\" or 1000, or \"*\" for every user"
                                                         : "\"hpc\" or 1000"));
    }

    // A string, or a number as one; else empty.
    static std::string text_of(const toml::node& node) {
        if (const auto* number = node.as_integer(); number != nullptr && number->get() >= 0)
            return std::to_string(number->get());
        return node.value_or(std::string());
    }

    void pattern(const toml::key& key, const toml::node& node, Result<void> (*check)(std::string_view),
                 std::string& into) {
        const auto* text = node.as_string();
        if (text == nullptr)
            return reader_.fail(
                node, fmt::format("{} is {}; write a pattern in quotes", key.str(), TableReader::kind_of(node)));
        if (const auto good = check(text->get()); !good) return reader_.fail(node, good.error());
        into = text->get();
    }

    void members(const toml::key& key, const toml::node& node) {
        const auto* list = node.as_array();
        if (list == nullptr)
            return reader_.fail(node, fmt::format("{} is {}; write a list such as [\"alice\", \"@hpc\"]", key.str(),
                                                  TableReader::kind_of(node)));
        if (!table_.contains("cgroup") && !table_.contains("unit"))
            return reader_.fail(key,
                                "members is for entries with cgroup or unit; user and group say themselves who "
                                "the members are: remove it");
        for (const auto& member : *list) {
            const auto text = text_of(member);
            if (text != everyone && !valid_identity(text.starts_with('@') ? text.substr(1) : text))
                return reader_.fail(member,
                                    "a member is a user such as \"alice\", a group such as \"@hpc\", or \"*\" "
                                    "for all users");
            match_.members.push_back(text);
        }
    }

    void asks_for_something() {
        for (const auto* key : {"user", "group", "cgroup", "unit"})
            if (table_.contains(key)) return;
        reader_.fail(table_, "an entry of match must ask for something; write user, group, cgroup or unit");
    }

    // What a template's name has in braces comes from the cgroup, except {user}.
    void captures() {
        const auto* node = table_.get("cgroup");
        if (node != nullptr && match_.cgroup.empty()) return;  // said already
        for (const auto name : names_in_braces(tenant_))
            if (name != user_braces && !has_braces(match_.cgroup, name))
                return reader_.fail(table_,
                                    fmt::format("tenant '{0}' needs {{{1}}}; write it into this entry's cgroup, "
                                                "as in cgroup = \"/slurm/{{{1}}}\"",
                                                tenant_, name));
        for (const auto name : names_in_braces(match_.cgroup))
            if (!has_braces(tenant_, name))
                return reader_.fail(
                    *node, fmt::format("the name of tenant '{}' does not use {{{}}}; write * instead", tenant_, name));
    }

    void warn() {
        const auto& members = match_.members;
        const bool by_place = !match_.cgroup.empty() || !match_.unit.empty();
        if (std::find(members.begin(), members.end(), everyone) != members.end())
            warning("members has \"*\": all users of the node may write this tenant's ledger; name users and groups");
        else if (by_place && members.empty() && match_.user.empty() && match_.group.empty() &&
                 !has_braces(tenant_, user_braces))
            warning(
                "the entry has no members, so only root's programs can be charged here; add members = [\"alice\", "
                "\"@hpc\"]");
        if (!match_.cgroup.empty() && reaches_into_users(match_.cgroup))
            warning(
                fmt::format("users can make cgroups that '{}' matches, below user@UID.service, and so choose this "
                            "tenant; write the path from its beginning",
                            printable(match_.cgroup)));
    }

    void warning(const std::string& what) {
        warnings_.push_back(location(reader_.file(), table_.source().begin) + what);
    }

    TableReader& reader_;
    std::string_view tenant_;
    const toml::table& table_;
    std::vector<std::string>& warnings_;
    Match match_;
    bool known_ = true;  // all keys are
    bool names_everyone_ = false;
};

}  // namespace

MatchList read_matches(TableReader& reader, const toml::node& node, std::string_view tenant,
                       std::vector<std::string>& warnings) {
    MatchList result;
    const auto* list = node.as_array();
    if (list == nullptr) {
        reader.fail(
            node, fmt::format("match is {}; write a list such as [{{ group = \"hpc\" }}]", TableReader::kind_of(node)));
        return result;
    }
    for (const auto& entry : *list)
        if (const auto* table = entry.as_table()) {
            result.entries.push_back(EntryReader(reader, tenant, *table, warnings).read());
            result.locations.push_back(location(reader.file(), table->source().begin));
        } else {
            reader.fail(entry, fmt::format("an entry of match is a table such as {{ group = \"hpc\" }}, not {}",
                                           TableReader::kind_of(entry)));
        }
    return result;
}

}  // namespace rdmaquota
