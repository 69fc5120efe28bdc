#include "policy/file/policy_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "policy/file/limit_tables.hpp"
#include "policy/file/sidecar_tables.hpp"
#include "policy/file/slurm_tables.hpp"
#include "policy/file/table_reader.hpp"
#include "policy/file/tenant_tables.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr std::int64_t newest_version = 1;

// The policy while it is merged from one or more files.
struct Merge {
    Policy policy;
    LocationsByTenant tenants;
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
        static constexpr std::array<std::string_view, 13> known{
            "version", "mode", "on_unavailable", "deny_errno", "clamp_device_attr", "log",
            "process", "node", "tenant",         "dynamic",    "sidecar",           "slurm", "grant_wait"};
        auto& policy = merge_.policy;
        if (key == "version") return version(node);
        if (key == "mode") return word(key, node, parse_mode, policy.mode);
        if (key == "on_unavailable") return word(key, node, parse_unavailable, policy.on_unavailable);
        if (key == "deny_errno") return word(key, node, parse_deny_errno, policy.deny_errno);
        if (key == "clamp_device_attr") return flag(key, node, policy.clamp_device_attr);
        if (key == "grant_wait") return milliseconds(key, node, most_grant_wait_ms, policy.grant_wait_ms);
        if (key == "log") return log(key, node);
        if (key == "process") return LimitTables(*this, "process").devices(key, node, policy.process);
        if (key == "node") return LimitTables(*this, "node").devices(key, node, policy.node);
        if (key == "tenant") return read_tenants(*this, key, node, policy, merge_.tenants);
        if (key == "dynamic") return read_dynamic(*this, node, policy.dynamic);
        if (key == "slurm") return read_slurm(*this, key, node, slurm());
        if (key == "sidecar") return read_sidecar(*this, key, node, policy.sidecar);
        unknown("key", key, known);
    }

    // Those of several files are one.
    SlurmPolicy& slurm() {
        auto& slurm = merge_.policy.slurm;
        return slurm ? *slurm : slurm.emplace();
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

    Merge& merge_;
};

Result<void> merge_text(Merge& merge, const std::string& text, const std::string& file, bool version_required) {
    const auto table = parse_toml(text, file);
    if (!table) return Error{table.error()};
    return FileReader(file, merge).read(table.value(), version_required);
}

// `distrust` is why others may write it; empty: they may not.
Result<void> judge(Merge& merge, const std::string& distrust, Distrusted distrusted) {
    if (distrust.empty()) return {};
    if (distrusted == Distrusted::refuse) return Error{distrust};
    merge.policy.warnings.push_back(distrust + "; reload refuses it");
    return {};
}

Result<std::string> text_of(Merge& merge, const std::string& path, Distrusted distrusted) {
    auto file = read_file_text(path);
    if (!file) return Error{file.error()};
    if (const auto judged = judge(merge, file->distrust, distrusted); !judged) return Error{judged.error()};
    return std::move(file->text);
}

Result<void> merge_file(Merge& merge, const std::string& path, Distrusted distrusted) {
    const auto text = text_of(merge, path, distrusted);
    if (!text) return Error{text.error()};
    return merge_text(merge, text.value(), path, false);
}

// Checks that need all files.
Result<Policy> finish(Merge& merge) {
    if (merge.policy.log_target == LogTarget::file && merge.policy.log_file.empty())
        return Error{merge.target_location +
                     "the log target is a file, but no file is named; add file = \"/var/log/...\""};
    if (!merge.policy.log_file.empty() && !merge.target_given)
        return Error{merge.file_location + "the log file would not be used; add target = \"file\""};
    if (const auto tenants = check_tenants(merge.policy, merge.tenants); !tenants) return Error{tenants.error()};
    if (const auto applied = apply_devices(merge.policy, merge.tenants); !applied) return Error{applied.error()};
    warn_of_tree(merge.policy, merge.tenants);
    return std::move(merge.policy);
}

// A user who may write a directory can add and replace files in it.
Result<void> check_directory(Merge& merge, const std::string& path, Distrusted distrusted) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return {};
    return judge(merge, distrust_of(path, status), distrusted);
}

std::string fragments_directory(const std::string& path) {
    return (std::filesystem::path(path).parent_path() / "conf.d").string();
}

Result<void> merge_fragments(Merge& merge, const std::string& path, Distrusted distrusted) {
    if (const auto checked = check_directory(merge, fragments_directory(path), distrusted); !checked) return checked;
    const auto fragments = policy_fragments(path);
    if (!fragments) return Error{fragments.error()};
    for (const auto& fragment : fragments.value())
        if (const auto read = merge_file(merge, fragment, distrusted); !read) return read;
    return {};
}

}  // namespace

Result<std::vector<std::string>> policy_fragments(const std::string& path) {
    namespace fs = std::filesystem;
    const fs::path directory = fragments_directory(path);
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

namespace {

Result<Policy> merge_all(Merge& merge, const std::string& path, const std::string& text, Distrusted distrusted) {
    if (const auto read = merge_text(merge, text, path, true); !read) return Error{read.error()};
    if (const auto read = merge_fragments(merge, path, distrusted); !read) return Error{read.error()};
    return finish(merge);
}

}  // namespace

Result<Policy> read_policy(const std::string& path, Distrusted distrusted) {
    Merge merge;
    const auto directory = std::filesystem::path(path).parent_path().string();
    if (const auto checked = check_directory(merge, directory.empty() ? "." : directory, distrusted); !checked)
        return Error{checked.error()};
    const auto text = text_of(merge, path, distrusted);
    if (!text) return Error{text.error()};
    return merge_all(merge, path, *text, distrusted);
}

Result<Policy> read_policy(const std::string& path, const std::string& text) {
    Merge merge;
    return merge_all(merge, path, text, Distrusted::refuse);
}

Result<Policy> parse_policy(const std::string& text, const std::string& file) {
    Merge merge;
    if (const auto read = merge_text(merge, text, file, true); !read) return Error{read.error()};
    return std::move(merge.policy);
}

}  // namespace rdmaquota
