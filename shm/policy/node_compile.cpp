// Compiles and publishes the node's policy.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/braces.hpp"
#include "policy/pattern.hpp"
#include "policy/printable.hpp"
#include "policy/write_all.hpp"
#include "shm/layout_version.hpp"
#include "shm/policy/node_image.hpp"

namespace rdmaquota {
namespace {

std::uint64_t new_id() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Asks once for each name: an answer may come from a directory service, and thousands of tenants share their names.
class Names {
public:
    explicit Names(const NameLookup& lookup) : lookup_(lookup) {}

    std::optional<uid_t> user(const std::string& name) { return ask(users_, lookup_.user, name); }
    std::optional<gid_t> group(const std::string& name) { return ask(groups_, lookup_.group, name); }

    // "alice", "@hpc" or "*"
    bool knows_member(const std::string& member) {
        if (member == "*") return true;
        return member.starts_with('@') ? group(member.substr(1)).has_value() : user(member).has_value();
    }

private:
    template <class Id>
    using Answers = std::map<std::string, std::optional<Id>>;

    template <class Id>
    static std::optional<Id> ask(Answers<Id>& answers,
                                 const std::function<std::optional<Id>(const std::string&)>& lookup,
                                 const std::string& name) {
        const auto [answer, is_new] = answers.try_emplace(name);
        if (is_new && lookup) answer->second = lookup(name);
        return answer->second;
    }

    const NameLookup& lookup_;
    Answers<uid_t> users_;
    Answers<gid_t> groups_;
};

class Compiler {
public:
    explicit Compiler(const NameLookup& names) : names_(names) {}

    Result<std::string> file(const Policy& policy) {
        for (std::size_t i = 0; i < policy.tenants.size(); ++i) add_tenant(policy.tenants[i]);
        for (const int rank : {0, 1, 2})
            for (std::size_t i = 0; i < policy.tenants.size(); ++i) add_matches(policy.tenants[i], i, rank);
        fill_header(policy);
        if (auto compiled = compile_sidecar(policy, sidecar_); !compiled) return Error{compiled.error()};
        if (!problem_.empty()) return Error{problem_};
        return image();
    }

private:
    void add_tenant(const TenantPolicy& tenant);
    void add_matches(const TenantPolicy& tenant, std::size_t index, int rank);
    void check(const Match& match);
    CompiledMatch compile(const Match& match);
    void set_user(const Match& match, CompiledMatch& compiled);
    void set_group(const Match& match, CompiledMatch& compiled);
    TextSpan members(const Match& match);
    void fill_header(const Policy& policy);
    Result<std::string> image();

    void note(const Result<void>& checked) {
        if (!checked) problem_ = checked.error();
    }

    TextSpan add_text(std::string_view text) {
        const TextSpan span{static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(text.size())};
        text_.append(text);
        return span;
    }

    Names names_;
    NodeHeader header_{};
    std::vector<CompiledTenant> tenants_;
    std::vector<CompiledMatch> matches_;
    CompiledSidecar sidecar_{};
    std::string text_;
    std::string problem_;  // why it cannot be compiled
};

void Compiler::add_tenant(const TenantPolicy& tenant) {
    note(check_name(tenant));
    CompiledTenant compiled{};
    compiled.name = add_text(tenant.name);
    compiled.flags =
        (tenant.mode ? CompiledTenant::has_mode : 0) | (tenant.deny_errno ? CompiledTenant::has_deny_errno : 0) |
        (tenant.grace_s ? CompiledTenant::has_grace : 0) | (tenant.transient ? CompiledTenant::transient : 0) |
        (tenant.is_override ? CompiledTenant::is_override : 0) |
        (tenant.hides_devices ? CompiledTenant::hides_devices : 0);
    if (tenant.hides_devices) header_.flags |= NodeHeader::hides_devices;
    compiled.mode = static_cast<std::uint32_t>(tenant.mode.value_or(Mode::enforce));
    compiled.deny_errno = static_cast<std::uint32_t>(tenant.deny_errno.value_or(0));
    compiled.weight = tenant.weight.value_or(default_weight);
    compiled.grace_s = tenant.grace_s.value_or(0);
    compiled.max_delay_plus_1 = tenant.max_delay_ms ? *tenant.max_delay_ms + 1 : 0;
    tenants_.push_back(compiled);
}

// What is tried first: containers, transient tenants, the file.
int rank_of(const TenantPolicy& tenant, const Match& match) noexcept {
    if (match.bound) return 0;
    return tenant.transient ? 1 : 2;
}

void Compiler::add_matches(const TenantPolicy& tenant, std::size_t index, int rank) {
    for (std::size_t i = 0; i < tenant.matches.size(); ++i) {
        if (rank_of(tenant, tenant.matches[i]) != rank) continue;
        auto compiled = compile(tenant.matches[i]);
        compiled.tenant = static_cast<std::uint32_t>(index);
        compiled.entry = static_cast<std::uint32_t>(i);
        // A template with {user} asks for the user, too.
        if (has_braces(tenant.name, user_braces) ||
            (compiled.flags & (CompiledMatch::by_user | CompiledMatch::by_group)) != 0)
            header_.flags |= NodeHeader::asks_for_ids;
        if ((compiled.flags & (CompiledMatch::by_cgroup | CompiledMatch::by_unit)) != 0)
            header_.flags |= NodeHeader::asks_for_cgroup;
        matches_.push_back(compiled);
    }
}

void Compiler::set_user(const Match& match, CompiledMatch& compiled) {
    compiled.user_name = add_text(match.user);
    if (match.user.empty()) return;
    const auto user = names_.user(match.user);
    compiled.user = user.value_or(0);
    compiled.flags |= CompiledMatch::by_user | (user ? 0 : CompiledMatch::unknown_user);
}

void Compiler::set_group(const Match& match, CompiledMatch& compiled) {
    compiled.group_name = add_text(match.group);
    if (match.group.empty()) return;
    const auto group = names_.group(match.group);
    compiled.group = group.value_or(0);
    compiled.flags |= CompiledMatch::by_group | (group ? 0 : CompiledMatch::unknown_group);
}

TextSpan Compiler::members(const Match& match) {
    std::string text;
    for (const auto& member : match.members) {
        if (member.find('\0') != member.npos) problem_ = fmt::format("'{}' is no member's name", printable(member));
        text += static_cast<char>(names_.knows_member(member) ? MemberMark::known : MemberMark::unknown);
        text.append(member).push_back('\0');
    }
    return add_text(text);
}

// Readers check lengths only.
void Compiler::check(const Match& match) {
    if (!match.cgroup.empty()) note(check_cgroup_pattern(match.cgroup));
    if (!match.unit.empty()) note(check_unit_pattern(match.unit));
    for (const auto& member : match.members)
        if (member.find('\0') != member.npos) note(Error{fmt::format("'{}' is no member's name", printable(member))});
}

CompiledMatch Compiler::compile(const Match& match) {
    check(match);
    CompiledMatch compiled{};
    set_user(match, compiled);
    set_group(match, compiled);
    compiled.cgroup = add_text(match.cgroup);
    compiled.unit = add_text(match.unit);
    compiled.flags |=
        (match.cgroup.empty() ? 0 : CompiledMatch::by_cgroup) | (match.unit.empty() ? 0 : CompiledMatch::by_unit);
    compiled.flags |= match.bound ? CompiledMatch::bound : 0;
    compiled.members = members(match);
    return compiled;
}

void Compiler::fill_header(const Policy& policy) {
    header_.magic = node_policy_magic;
    header_.layout_version = layout_version;
    header_.id = new_id();
    header_.mode = static_cast<std::uint32_t>(policy.mode);
    header_.on_unavailable = static_cast<std::uint32_t>(policy.on_unavailable);
    header_.deny_errno = static_cast<std::uint32_t>(policy.deny_errno ? policy.deny_errno : EDQUOT);
    header_.clamp_device_attr = policy.clamp_device_attr ? 1 : 0;
    header_.log_level = static_cast<std::uint32_t>(policy.log_level);
    header_.log_target = static_cast<std::uint32_t>(policy.log_target);
    header_.grant_wait_plus_1 = policy.grant_wait_ms + std::uint64_t{1};
    header_.log_file = add_text(policy.log_file);
    header_.metrics = add_text(compile_metrics(policy.sidecar.metrics));
}

template <class Record>
void append(std::string& file, std::span<const Record> records) {
    file.append(reinterpret_cast<const char*>(records.data()), records.size_bytes());
}

Result<std::string> Compiler::image() {
    const auto bytes = sizeof header_ + tenants_.size() * sizeof(CompiledTenant) +
                       matches_.size() * sizeof(CompiledMatch) + sizeof sidecar_ + text_.size();
    if (bytes > largest_node_policy)
        return Error{fmt::format("the policy is too large: {} tenants with {} matches need {} bytes of at most {}",
                                 tenants_.size(), matches_.size(), bytes, largest_node_policy)};
    header_.file_bytes = static_cast<std::uint32_t>(bytes);
    header_.tenant_count = static_cast<std::uint32_t>(tenants_.size());
    header_.match_count = static_cast<std::uint32_t>(matches_.size());
    header_.text_bytes = static_cast<std::uint32_t>(text_.size());
    std::string file;
    file.reserve(bytes);
    append(file, std::span<const NodeHeader>(&header_, 1));
    append(file, std::span<const CompiledTenant>(tenants_));
    append(file, std::span<const CompiledMatch>(matches_));
    append(file, std::span<const CompiledSidecar>(&sidecar_, 1));
    return file.append(text_);
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    const bool written = fd >= 0 && fchmod(fd, 0644) == 0 && write_all(fd, bytes);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
    return {};
}

}  // namespace

Result<void> publish_node_policy(const PolicyLock&, const std::string& path, const Policy& policy,
                                 const NameLookup& names) {
    const auto file = Compiler(names).file(policy);
    if (!file) return Error{file.error()};
    const auto temporary = path + ".tmp";
    if (auto written = write_file(temporary, *file); !written) {
        unlink(temporary.c_str());
        return written;
    }
    if (std::rename(temporary.c_str(), path.c_str()) == 0) return {};
    const int error = errno;
    unlink(temporary.c_str());
    return Error{fmt::format("cannot replace {}: {}", path, std::strerror(error))};
}

}  // namespace rdmaquota
