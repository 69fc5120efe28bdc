#include "policy/policy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

template <class E>
struct Name {
    E value;
    std::string_view text;
};

constexpr std::array<Name<Mode>, 3> modes{{{Mode::enforce, "enforce"}, {Mode::audit, "audit"}, {Mode::off, "off"}}};
constexpr std::array<Name<Unavailable>, 2> unavailables{{{Unavailable::allow, "allow"}, {Unavailable::deny, "deny"}}};
constexpr std::array<Name<LogLevel>, 5> log_levels{{{LogLevel::none, "none"},
                                                    {LogLevel::error, "error"},
                                                    {LogLevel::warning, "warning"},
                                                    {LogLevel::info, "info"},
                                                    {LogLevel::debug, "debug"}}};
constexpr std::array<Name<LogTarget>, 3> log_targets{
    {{LogTarget::standard_error, "stderr"}, {LogTarget::syslog, "syslog"}, {LogTarget::file, "file"}}};
constexpr std::array<Name<int>, 3> deny_errnos{{{EDQUOT, "EDQUOT"}, {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"}}};

template <class E, std::size_t N>
std::string_view name_in(const std::array<Name<E>, N>& names, E value) noexcept {
    for (const auto& row : names)
        if (row.value == value) return row.text;
    return "?";
}

template <class E, std::size_t N>
Result<E> parse_in(const std::array<Name<E>, N>& names, std::string_view text, std::string_view what) {
    std::string accepted;
    for (const auto& row : names) {
        if (row.text == text) return row.value;
        accepted += accepted.empty() ? "" : ", ";
        accepted += row.text;
    }
    return Error{fmt::format("'{}' is no {}: choose one of {}", printable(text), what, accepted)};
}

bool valid_name(std::string_view name) noexcept {
    const auto accepted = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.' || c == ':';
    };
    return !name.empty() && std::all_of(name.begin(), name.end(), accepted);
}

// 1 to 255, as ibv_qp_attr has room for.
bool valid_port(std::string_view text) noexcept {
    unsigned number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc{} && end == text.data() + text.size() && !text.starts_with('0') && number <= 255;
}

}  // namespace

bool valid_device(std::string_view name) noexcept {
    if (name == any_device) return true;
    if (name.size() >= device_name_bytes) return false;
    const auto slash = name.find('/');
    if (slash == name.npos) return valid_name(name);
    const auto device = name.substr(0, slash);
    return device != total_device && valid_name(device) && valid_port(name.substr(slash + 1));
}

Result<void> check_limitable(std::string_view device, Resource resource, std::uint64_t limit) {
    if (is_port(device) && resource != Resource::qp)
        return Error{
            fmt::format("{0} is no resource of a port: at '{1}' only qp can be limited; write {0} for the device "
                        "'{2}'",
                        info(resource).name, device, without_port(device))};
    if (device == total_device && is_percentage(limit) && resource != Resource::mr_bytes)
        return Error{fmt::format("{0} cannot be limited in percent for the sum over devices; write an amount, or the percentage for "
                                 "a device or \"*\"", info(resource).name)};
    return {};
}

std::vector<Resource> resources_with_capacity(std::string_view device) {
    std::vector<Resource> resources;
    for (const auto& row : resource_table)
        if (has_capacity(row.id) && check_limitable(device, row.id, percentage(1))) resources.push_back(row.id);
    return resources;
}

Result<std::vector<Setting>> parse_settings(std::string_view device, std::string_view text) {
    std::vector<Setting> settings;
    if (const auto value = text.substr(std::min(text.find('=') + 1, text.size())); text.starts_with("all=")) {
        if (!value.ends_with('%'))
            return Error{fmt::format("'{}' is not a limit for all resources: write a percentage, such as all=25%", printable(value))};
        for (const auto resource : resources_with_capacity(device)) {
            const auto limit = parse_limit(resource, value);
            if (!limit) return Error{limit.error()};
            settings.push_back({resource, *limit});
        }
        return settings;
    }
    const auto setting = parse_setting(text);
    if (!setting) return Error{setting.error()};
    if (const auto limitable = check_limitable(device, setting->resource, setting->limit); !limitable)
        return Error{limitable.error()};
    return std::vector{*setting};
}

// Takes "DEVICE:" off `text`; empty where no device is named.
static Result<std::string> take_device(std::string_view& text) {
    const auto colon = text.substr(0, text.find('=')).rfind(':');
    if (colon == text.npos) return std::string();
    const auto device = std::string(text.substr(0, colon));
    if (!valid_device(device)) return Error{fmt::format("'{}' is no device name", printable(device))};
    text.remove_prefix(colon + 1);
    return device;
}

Result<DeviceSettings> parse_device_settings(std::string_view text) {
    const auto device = take_device(text);
    if (!device) return Error{device.error()};
    auto settings = parse_settings(*device, text);
    if (!settings) return Error{settings.error()};
    return DeviceSettings{*device, std::move(*settings)};
}

Result<void> add_settings(LimitRow& row, std::string_view device, std::string_view text) {
    const auto settings = parse_settings(device, text);
    if (!settings) return Error{settings.error()};
    const bool all = text.starts_with(all_resources);
    for (const auto& [resource, limit] : *settings)
        if (!all || row[index(resource)] == unset) row[index(resource)] = limit;
    return {};
}

Result<void> add_limits(ScopeLimits& scope, const std::vector<std::string>& texts) {
    for (std::string_view text : texts) {
        auto device = take_device(text);
        if (!device) return Error{device.error()};
        if (device->empty()) device = std::string(any_device);
        if (auto added = add_settings(row_for(scope, *device), *device, text); !added) return added;
    }
    return {};
}

LimitRow& row_for(ScopeLimits& scope, std::string_view device) {
    for (auto& entry : scope)
        if (entry.device == device) return entry.limits;
    return scope.emplace_back(DeviceLimits{std::string(device), unset_row()}).limits;
}

const LimitRow* find_row(const ScopeLimits& scope, std::string_view device) noexcept {
    for (const auto& entry : scope)
        if (entry.device == device) return &entry.limits;
    return nullptr;
}

std::uint64_t value_for(const ScopeLimits& scope, std::string_view device, Resource resource) noexcept {
    const auto* own = find_row(scope, device);
    if (own != nullptr && (*own)[index(resource)] != unset) return (*own)[index(resource)];
    const auto* any = stands_alone(device) ? nullptr : find_row(scope, any_device);
    return any == nullptr ? unset : (*any)[index(resource)];
}

Policy::Policy() : tenants(1) {}

const TenantPolicy* Policy::find(std::string_view tenant) const noexcept {
    for (const auto& entry : tenants)
        if (entry.name == tenant) return &entry;
    return nullptr;
}

TenantPolicy* Policy::find(std::string_view tenant) noexcept {
    return const_cast<TenantPolicy*>(std::as_const(*this).find(tenant));
}

TenantPolicy& Policy::tenant(std::string_view name) {
    if (auto* found = find(name)) return *found;
    auto& added = tenants.emplace_back();
    added.name = name;
    return added;
}

Result<void> check_name(const TenantPolicy& tenant) {
    if (is_template(tenant.name)) return check_template_name(tenant.name);
    auto name = tenant.name;
    if (tenant.is_override) std::replace(name.begin(), name.end(), '#', 'x');
    return check_tenant_name(name);
}

const TenantPolicy* find_or_template(const Policy& policy, std::string_view tenant) noexcept {
    if (const auto* found = policy.find(tenant)) return found;
    for (const auto& entry : policy.tenants)
        if (is_template(entry.name) && is_instance(tenant, entry.name)) return &entry;
    return nullptr;
}

TenantLimits limits_of(const Policy& policy, const TenantPolicy& tenant) {
    TenantLimits result;
    static_cast<Settings&>(result) = policy;
    result.tenant = tenant.name;
    result.weight = tenant.weight.value_or(default_weight);
    result.limits = tenant.limits;
    result.guarantees = tenant.guarantees;
    result.softs = tenant.softs;
    result.cluster = tenant.cluster;
    result.for_everyone = policy.process;
    result.is_override = tenant.is_override;
    result.own_limits = tenant.own_limits;
    result.own_softs = tenant.own_softs;
    result.hides_devices = tenant.hides_devices;
    auto mode = tenant.mode;
    auto deny_errno = tenant.deny_errno;
    auto grace_s = tenant.grace_s;
    auto max_delay_ms = tenant.max_delay_ms;
    for (auto above = parent_of(tenant.name); above != node_tenant; above = parent_of(above))
        if (const auto* parent = find_or_template(policy, above)) {
            if (!mode) mode = parent->mode;
            if (!deny_errno) deny_errno = parent->deny_errno;
            if (!grace_s) grace_s = parent->grace_s;
            if (!max_delay_ms) max_delay_ms = parent->max_delay_ms;
        }
    result.mode = mode.value_or(policy.mode);
    result.deny_errno = deny_errno.value_or(policy.deny_errno);
    result.grace_s = grace_s.value_or(default_grace_s);
    result.max_delay_ms = max_delay_ms.value_or(default_max_delay_ms);
    return result;
}

std::string_view name(Mode value) noexcept { return name_in(modes, value); }
std::string_view name(Unavailable value) noexcept { return name_in(unavailables, value); }
std::string_view name(LogLevel value) noexcept { return name_in(log_levels, value); }
std::string_view name(LogTarget value) noexcept { return name_in(log_targets, value); }
Result<Mode> parse_mode(std::string_view text) { return parse_in(modes, text, "mode"); }
Result<Unavailable> parse_unavailable(std::string_view text) { return parse_in(unavailables, text, "on_unavailable"); }
Result<LogLevel> parse_log_level(std::string_view text) { return parse_in(log_levels, text, "log level"); }
Result<LogTarget> parse_log_target(std::string_view text) { return parse_in(log_targets, text, "log target"); }
Result<int> parse_deny_errno(std::string_view text) { return parse_in(deny_errnos, text, "deny_errno"); }
std::string_view deny_errno_name(int number) noexcept { return name_in(deny_errnos, number == 0 ? EDQUOT : number); }

}  // namespace rdmaquota
