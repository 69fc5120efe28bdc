#include "policy/file/policy_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "policy/file/sidecar_tables.hpp"
#include "policy/file/table_reader.hpp"

namespace rdmaquota {
namespace {

constexpr std::int64_t newest_version = 1;

// The compiled policy has room for this many bytes; see PolicyImage::log_file and CompiledSidecar::backstop.
constexpr std::size_t longest_path_bytes = 255;

// The policy while it is merged from one or more files.
struct Merge {
    Policy policy;
    bool target_given = false;
    std::string file_location;    // where log.file was last given
    std::string target_location;  // where log.target was last given
};

// Reads one file into the merge.
class FileReader : public TableReader {
public:
    FileReader(const std::string& file, Merge& merge) : TableReader(file), merge_(merge) {}

    Result<void> read(const toml::table& root, bool version_required) {
        for (const auto& [key, node] : root) root_entry(key, node);
        if (version_required && !root.contains("version"))
            fail({1, 1}, fmt::format("the version is missing; write version = {} at the top", newest_version));
        return verdict();
    }

private:
    void root_entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 10> known{
            "version", "mode",    "on_unavailable", "deny_errno", "clamp_device_attr",
            "log",     "process", "tenant",         "dynamic",    "sidecar"};
        auto& policy = merge_.policy;
        if (key == "version") return version(node);
        if (key == "mode") return word(key, node, parse_mode, policy.mode);
        if (key == "on_unavailable") return word(key, node, parse_unavailable, policy.on_unavailable);
        if (key == "deny_errno") return word(key, node, parse_deny_errno, policy.deny_errno);
        if (key == "clamp_device_attr") return flag(key, node, policy.clamp_device_attr);
        if (key == "log") return log(key, node);
        if (key == "process") return scope(key, node, policy.process);
        if (key == "tenant") return tenants(key, node);
        if (key == "dynamic") return read_dynamic(*this, node, policy.dynamic);
        if (key == "sidecar") return read_sidecar(*this, key, node, policy.sidecar);
        unknown("key", key, known);
    }

    void version(const toml::node& node) {
        const auto* number = node.as_integer();
        if (number == nullptr || number->get() != newest_version)
            fail(node, fmt::format("this rdmaquota reads version {0} only; write version = {0}", newest_version));
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
        merge_.target_location = location(file(), node.source().begin);
    }

    void log_file(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || !text->get().starts_with('/'))
            return fail(node, "the log file must be an absolute path in quotes");
        const auto control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
        if (text->get().size() > longest_path_bytes || std::any_of(text->get().begin(), text->get().end(), control))
            return fail(node,
                        fmt::format("the log file's path must be at most {} bytes long, without control characters",
                                    longest_path_bytes));
        merge_.policy.log_file = text->get();
        merge_.file_location = location(file(), node.source().begin);
    }

    void tenants(const toml::key& key, const toml::node& node) {
        const auto* table = as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [tenant, limits] : *table)
            if (tenant == default_tenant)
                default_entries(tenant, limits);
            else
                unknown_tenant(tenant, limits);
    }

    void default_entries(const toml::key& key, const toml::node& node) {
        const auto* table = as_table(key, node);
        if (table == nullptr) return;
        for (const auto& [entry, value] : *table)
            if (entry == "bypass" && !value.is_table())
                bypass(value);
            else if (entry == "backstop" && !value.is_table())
                backstop(value);
            else
                scope_entry(entry, value, merge_.policy.tenant);
    }

    // This key used to say what is done about a bypass. Policies that name it still load.
    void bypass(const toml::node& node) {
        const auto word = node.value_or(std::string());
        if (word == "report") return;
        if (word != "charge" && word != "limit" && word != "kill")
            return fail(node, "bypass can only be \"report\", which is the default; remove it");
        merge_.policy.warnings.push_back(
            fmt::format("{}bypass = \"{}\" is no longer possible: a bypass is reported, nothing more; remove it",
                        location(file(), node.source().begin), word));
    }

    void backstop(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || !text->get().starts_with('/') || text->get().size() < 2 || text->get().ends_with('/') ||
            text->get().find_first_of("\n\t") != std::string::npos ||
            (text->get() + "/").find("/../") != std::string::npos || text->get().size() > longest_path_bytes)
            return fail(node, "backstop is the path of a cgroup below the root, such as \"/slurm\"");
        merge_.policy.sidecar.backstop = text->get();
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
            return fail(device, fmt::format("'{}' is no device name; write one such as mlx5_0, a port such as "
                                            "\"mlx5_0/1\", \"*\" for each device, or total for their sum",
                                            device.str()));
        if (const auto* table = as_table(device, rows))
            for (const auto& [resource, limit] : *table)
                limit_entry(device.str(), resource, limit, row_for(limits, device.str()));
    }

    void limit_entry(std::string_view device, const toml::key& key, const toml::node& node, LimitRow& row) {
        const auto resource = find_resource(key.str());
        if (!resource) return unknown("resource", key, resource_list());
        if (const auto limitable = check_limitable(device, *resource); !limitable) return fail(key, limitable.error());
        amount(*resource, node, row[index(*resource)]);
    }

    Merge& merge_;
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

// Checks that need all files.
Result<Policy> finish(Merge& merge) {
    if (merge.policy.log_target == LogTarget::file && merge.policy.log_file.empty())
        return Error{merge.target_location +
                     "the log target is a file, but no file is named; add file = \"/var/log/...\""};
    if (!merge.policy.log_file.empty() && !merge.target_given)
        return Error{merge.file_location + "the log file would not be used; add target = \"file\""};
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
