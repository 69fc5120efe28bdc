#include "policy/policy_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/core.h>

#include "policy/did_you_mean.hpp"
#include "policy/policy_toml.hpp"

namespace rdmaquota {
namespace {

constexpr std::int64_t newest_version = 1;

// As long as the compiled policy has room for; see PolicyImage::log_file.
constexpr std::size_t longest_log_file_bytes = 255;

// What is being put together from one or more files.
struct Merge {
    Policy policy;
    bool target_given = false;
    std::string file_place;    // where log.file was last given
    std::string target_place;  // where log.target was last given
};

std::string kind_of(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "a list";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "a number";
        case toml::node_type::floating_point:
            return "a number with a fraction";
        case toml::node_type::boolean:
            return "true or false";
        default:
            return "a date or time";
    }
}

// Reads one file into the merge. All errors are gathered and the one that comes first in the file
// is told: tables are kept sorted by key, which is not the order in which a person reads.
class FileReader {
public:
    FileReader(const std::string& file, Merge& merge) : file_(file), merge_(merge) {}

    Result<void> read(const toml::table& root, bool version_required) {
        for (const auto& [key, node] : root) root_entry(key, node);
        if (version_required && !root.contains("version"))
            fail({1, 1}, fmt::format("the version is missing; write version = {} at the top", newest_version));
        if (error_) return Error{*error_};
        return {};
    }

private:
    void root_entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 8> known{"version",           "mode", "on_unavailable", "deny_errno",
                                                               "clamp_device_attr", "log",  "process",        "tenant"};
        auto& policy = merge_.policy;
        if (key == "version") return version(node);
        if (key == "mode") return word(key, node, parse_mode, policy.mode);
        if (key == "on_unavailable") return word(key, node, parse_unavailable, policy.on_unavailable);
        if (key == "deny_errno") return word(key, node, parse_deny_errno, policy.deny_errno);
        if (key == "clamp_device_attr") return flag(key, node, policy.clamp_device_attr);
        if (key == "log") return log(key, node);
        if (key == "process") return scope(key, node, policy.process);
        if (key == "tenant") return tenants(key, node);
        unknown("key", key, known);
    }

    void version(const toml::node& node) {
        const auto* number = node.as_integer();
        if (number == nullptr || number->get() != newest_version)
            fail(node, fmt::format("this rdmaquota reads version {0} only; write version = {0}", newest_version));
    }

    template <class T>
    void word(const toml::key& key, const toml::node& node, Result<T> (*parse)(std::string_view), T& into) {
        const auto* text = node.as_string();
        if (text == nullptr)
            return fail(node, fmt::format("{} is {}; write a word in quotes", key.str(), kind_of(node)));
        const auto value = parse(text->get());
        if (!value) return fail(node, value.error());
        into = value.value();
    }

    void flag(const toml::key& key, const toml::node& node, bool& into) {
        const auto* value = node.as_boolean();
        if (value == nullptr)
            return fail(node, fmt::format("{} is {}; write true or false", key.str(), kind_of(node)));
        into = value->get();
    }

    void log(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 3> known{"level", "target", "file"};
        const auto* table = as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [entry, value] : *table) {
            if (entry == "level")
                word(entry, value, parse_log_level, merge_.policy.log_level);
            else if (entry == "target")
                log_target(entry, value);
            else if (entry == "file")
                log_file(value);
            else
                unknown("key in [log]", entry, known);
        }
    }

    void log_target(const toml::key& key, const toml::node& node) {
        word(key, node, parse_log_target, merge_.policy.log_target);
        merge_.target_given = true;
        merge_.target_place = place(file_, node.source().begin);
    }

    void log_file(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || !text->get().starts_with('/'))
            return fail(node, "the log file must be an absolute path in quotes");
        const auto control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
        if (text->get().size() > longest_log_file_bytes || std::any_of(text->get().begin(), text->get().end(), control))
            return fail(node,
                        fmt::format("the log file's path must be at most {} bytes long, without control characters",
                                    longest_log_file_bytes));
        merge_.policy.log_file = text->get();
        merge_.file_place = place(file_, node.source().begin);
    }

    void tenants(const toml::key& key, const toml::node& node) {
        const auto* table = as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [tenant, limits] : *table)
            if (tenant == default_tenant)
                scope(tenant, limits, merge_.policy.tenant);
            else
                unknown_tenant(tenant, limits);
    }

    void unknown_tenant(const toml::key& key, const toml::node& node) {
        if (find_resource(key.str()) || !node.is_table())
            return fail(
                key, fmt::format("'{}' is no tenant; write limits below [tenant.{}.\"*\"]", key.str(), default_tenant));
        fail(key,
             fmt::format("tenant '{}': this version has the one tenant '{}' that every process is in; write its limits"
                         " below [tenant.{}.\"*\"]",
                         key.str(), default_tenant, default_tenant));
    }

    void scope(const toml::key& key, const toml::node& node, ScopeLimits& limits) {
        const auto* table = as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [device, rows] : *table) scope_entry(device, rows, limits);
    }

    void scope_entry(const toml::key& device, const toml::node& rows, ScopeLimits& limits) {
        if (device == "match")
            return fail(device,
                        "match is not known to this version: every process is in the tenant 'default'; remove it");
        if (find_resource(device.str()) && !rows.is_table())
            return fail(device,
                        fmt::format("{} needs a device; write it below a table such as [process.\"*\"]", device.str()));
        if (!valid_device(device.str()))
            return fail(device,
                        fmt::format("'{}' is no device name; write one such as mlx5_0, a port such as \"mlx5_0/1\", \"*\" for each "
                                    "device, or total for their sum",
                                    device.str()));
        if (const auto* table = as_table(device, rows))
            for (const auto& [resource, limit] : *table)
                limit_entry(device.str(), resource, limit, row_for(limits, device.str()));
    }

    void limit_entry(std::string_view device, const toml::key& key, const toml::node& node, LimitRow& row) {
        const auto resource = find_resource(key.str());
        if (!resource) return unknown("resource", key, resource_list());
        if (const auto placed = check_place(device, *resource); !placed) return fail(key, placed.error());
        const auto limit = read_limit(*resource, node);
        if (!limit) return fail(node, limit.error());
        row[index(*resource)] = limit.value();
    }

    static Result<std::uint64_t> read_limit(Resource resource, const toml::node& node) {
        if (const auto* text = node.as_string()) return parse_limit(resource, text->get());
        if (const auto* number = node.as_integer()) return parse_limit(resource, std::to_string(number->get()));
        return Error{fmt::format("{} is {}; write a whole number, or a string such as {}", info(resource).name,
                                 kind_of(node),
                                 info(resource).unit == Unit::bytes ? "\"10GiB\" or \"max\"" : "\"10k\" or \"max\"")};
    }

    const toml::table* as_table(const toml::key& key, const toml::node& node) {
        if (!node.is_table()) fail(node, fmt::format("{} is {}; it must be a table", key.str(), kind_of(node)));
        return node.as_table();
    }

    void unknown(std::string_view what, const toml::key& key, std::span<const std::string_view> known) {
        const auto guess = did_you_mean(key.str(), known);
        if (!guess.empty()) return fail(key, fmt::format("unknown {} '{}'{}", what, key.str(), guess));
        std::string names;
        for (const auto name : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        fail(key, fmt::format("unknown {} '{}'; choose one of {}", what, key.str(), names));
    }

    static std::span<const std::string_view> resource_list() {
        static const auto names = [] {
            std::array<std::string_view, resource_count> list;
            for (const auto& row : resource_table) list[index(row.id)] = row.name;
            return list;
        }();
        return names;
    }

    void fail(const toml::node& node, const std::string& message) { fail(node.source().begin, message); }
    void fail(const toml::key& key, const std::string& message) { fail(key.source().begin, message); }
    void fail(const toml::source_position& position, const std::string& message) {
        if (error_ && !(position < error_position_)) return;
        error_position_ = position;
        error_ = place(file_, position) + message;
    }

    const std::string& file_;
    Merge& merge_;
    toml::source_position error_position_{};
    std::optional<std::string> error_;
};

Result<void> merge_text(Merge& merge, const std::string& text, const std::string& file, bool version_required) {
    const auto table = parse_toml(text, file);
    if (!table) return Error{table.error()};
    return FileReader(file, merge).read(table.value(), version_required);
}

Result<void> merge_file(Merge& merge, const std::string& path, bool version_required) {
    const auto text = read_text(path);
    if (!text) return Error{text.error()};
    return merge_text(merge, text.value(), path, version_required);
}

// What can only be judged when all files have been read.
Result<Policy> finish(Merge& merge) {
    if (merge.policy.log_target == LogTarget::file && merge.policy.log_file.empty())
        return Error{merge.target_place +
                     "the log target is a file, but no file is named; add file = \"/var/log/...\""};
    if (!merge.policy.log_file.empty() && !merge.target_given)
        return Error{merge.file_place + "the log file would not be used; add target = \"file\""};
    return std::move(merge.policy);
}

Result<void> check_owner(const std::string& path, const std::string& directory) {
    struct stat policy {};
    struct stat fragments {};
    if (::stat(path.c_str(), &policy) != 0 || ::stat(directory.c_str(), &fragments) != 0) return {};
    if (fragments.st_uid == 0 || fragments.st_uid == policy.st_uid) return {};
    return Error{
        fmt::format("{}: belongs to user {}, not to root or the owner of {}; change its owner or move the policy",
                    directory, fragments.st_uid, path)};
}

}  // namespace

Result<std::vector<std::string>> policy_fragments(const std::string& path) {
    namespace fs = std::filesystem;
    const auto directory = fs::path(path).parent_path() / "conf.d";
    if (const auto owner = check_owner(path, directory); !owner) return Error{owner.error()};
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
        const auto name = entry->path().filename().string();
        if (name.ends_with(".toml") && !name.starts_with('.')) found.push_back(entry->path().string());
    }
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
        return Error{fmt::format("{}: cannot read: {}", directory.string(), std::strerror(error.value()))};
    std::sort(found.begin(), found.end());
    return found;
}

Result<Policy> read_policy(const std::string& path) {
    Merge merge;
    if (const auto read = merge_file(merge, path, true); !read) return Error{read.error()};
    const auto fragments = policy_fragments(path);
    if (!fragments) return Error{fragments.error()};
    for (const auto& fragment : fragments.value())
        if (const auto read = merge_file(merge, fragment, false); !read) return Error{read.error()};
    return finish(merge);
}

Result<Policy> parse_policy(const std::string& text, const std::string& file) {
    Merge merge;
    if (const auto read = merge_text(merge, text, file, true); !read) return Error{read.error()};
    return std::move(merge.policy);
}

}  // namespace rdmaquota
