// What a compiled policy says, in the words of the policy file. Values that this version does not know read as the
// defaults.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "shm/policy/node_image.hpp"

namespace rdmaquota {
namespace {

template <class E>
E known(std::uint32_t value, E last, E otherwise) noexcept {
    return value <= static_cast<std::uint32_t>(last) ? static_cast<E>(value) : otherwise;
}

Mode known_mode(std::uint32_t value) noexcept { return known(value, Mode::off, Mode::enforce); }

int known_errno(std::uint32_t value) noexcept {
    const auto number = static_cast<int>(value);
    return number == EAGAIN || number == ENOMEM ? number : EDQUOT;
}

struct Member {
    bool is_known = true;
    std::string_view name;
};

std::vector<Member> members_in(std::string_view text) {
    std::vector<Member> members;
    for (auto end = text.find('\0'); end != text.npos; end = text.find('\0')) {
        if (end > 0) members.push_back({text.front() == static_cast<char>(MemberMark::known), text.substr(1, end - 1)});
        text.remove_prefix(end + 1);
    }
    return members;
}

TenantPolicy decompile_tenant(const NodePolicy::Image& image, const CompiledTenant& compiled) {
    const auto has = [&](std::uint32_t bit) { return (compiled.flags & bit) != 0; };
    TenantPolicy tenant;
    tenant.name = image.text(compiled.name);
    if (has(CompiledTenant::has_mode)) tenant.mode = known_mode(compiled.mode);
    if (has(CompiledTenant::has_deny_errno)) tenant.deny_errno = known_errno(compiled.deny_errno);
    if (has(CompiledTenant::has_grace)) tenant.grace_s = compiled.grace_s;
    if (compiled.max_delay_plus_1 != 0) tenant.max_delay_ms = std::min(compiled.max_delay_plus_1 - 1, most_max_delay_ms);
    tenant.weight = std::clamp(compiled.weight, std::uint32_t{1}, most_weight);
    tenant.transient = has(CompiledTenant::transient);
    tenant.is_override = has(CompiledTenant::is_override);
    tenant.hides_devices = has(CompiledTenant::hides_devices);
    return tenant;
}

Match decompile_match(const NodePolicy::Image& image, const CompiledMatch& compiled) {
    const auto text = [&](TextSpan span) { return std::string(image.text(span)); };
    Match match;
    match.user = text(compiled.user_name);
    match.group = text(compiled.group_name);
    match.cgroup = text(compiled.cgroup);
    match.unit = text(compiled.unit);
    match.bound = (compiled.flags & CompiledMatch::bound) != 0;
    for (const auto& member : members_in(image.text(compiled.members))) match.members.emplace_back(member.name);
    return match;
}

// All of one entry's, groups with '@' in front.
std::vector<std::string> unknown_in(const NodePolicy::Image& image, const CompiledMatch& match) {
    std::vector<std::string> names;
    if (match.flags & CompiledMatch::unknown_user) names.emplace_back(image.text(match.user_name));
    if (match.flags & CompiledMatch::unknown_group) names.push_back("@" + std::string(image.text(match.group_name)));
    for (const auto& member : members_in(image.text(match.members)))
        if (!member.is_known) names.emplace_back(member.name);
    return names;
}

}  // namespace

Settings NodePolicy::settings() const {
    const auto& header = image_->header();
    Settings settings;
    settings.mode = known_mode(header.mode);
    settings.on_unavailable = known(header.on_unavailable, Unavailable::deny, Unavailable::allow);
    settings.deny_errno = known_errno(header.deny_errno);
    settings.clamp_device_attr = header.clamp_device_attr != 0;
    settings.log_level = known(header.log_level, LogLevel::debug, LogLevel::warning);
    settings.log_target = known(header.log_target, LogTarget::file, LogTarget::standard_error);
    if (header.grant_wait_plus_1 != 0)
        settings.grant_wait_ms =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(header.grant_wait_plus_1 - 1, most_grant_wait_ms));
    settings.log_file = image_->text(header.log_file);
    return settings;
}

Policy NodePolicy::decompile() const {
    Policy policy;
    static_cast<Settings&>(policy) = settings();
    policy.tenants.clear();
    for (const auto& tenant : image_->tenants()) policy.tenants.push_back(decompile_tenant(*image_, tenant));
    for (const auto& match : image_->matches())
        policy.tenants[match.tenant].matches.push_back(decompile_match(*image_, match));
    std::erase_if(policy.tenants, [](const TenantPolicy& tenant) { return !check_name(tenant); });
    policy.tenant(default_tenant);  // there always is one
    decompile_sidecar(image_->sidecar(), policy);
    policy.sidecar.metrics = decompile_metrics(image_->text(image_->header().metrics));
    return policy;
}

std::vector<NodePolicy::UnknownName> NodePolicy::unknown_names() const {
    std::vector<UnknownName> result;
    std::size_t own = 0;  // where the names of this match's tenant begin, whose matches stand together
    for (const auto& match : image_->matches()) {
        const std::string tenant(image_->text(image_->tenants()[match.tenant].name));
        if (!result.empty() && result.back().tenant != tenant) own = result.size();
        for (auto& name : unknown_in(*image_, match))
            if (std::none_of(result.begin() + static_cast<std::ptrdiff_t>(own), result.end(),
                             [&](const UnknownName& one) { return one.name == name; }))
                result.push_back({tenant, std::move(name)});
    }
    return result;
}

}  // namespace rdmaquota
