#include "tools/common/events/event_text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <optional>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "tools/common/events/event_kinds.hpp"
#include "tools/common/tenants/pod_names.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/text/terminal.hpp"
#include "policy/fixed_text.hpp"

namespace rdmaquota {
namespace {

// By event_scope.
constexpr std::array<std::string_view, 5> scopes{"none", "process", "process_total", "tenant", "tenant_total"};
constexpr std::array<std::string_view, 5> scope_words{"no limit", "process limit", "process limit, sum of devices",
                                                      "tenant limit", "tenant limit, sum of devices"};

static_assert(ledger_kinds.size() == static_cast<std::size_t>(EventKind::delayed));

template <std::size_t N>
std::string name_in(const std::array<std::string_view, N>& names, std::uint32_t value) {
    return value < N ? std::string(names[value]) : fmt::format("#{}", value);
}

std::string kind_name(const Event& event) {
    const auto number = static_cast<std::uint32_t>(event.kind);
    if (number == 0) return "none";
    return name_in(ledger_kinds, number - 1 < ledger_kinds.size() ? number - 1 : number);
}

std::optional<std::string> device_name(const Event& event, const DeviceNames& devices) {
    for (const auto& [number, name] : devices)
        if (number == event.device) return name;
    return std::nullopt;
}

std::optional<Resource> resource_of(const Event& event) {
    if (event.resource >= limit_count) return std::nullopt;
    return static_cast<Resource>(event.resource);
}

std::string comm_of(const Event& event) { return std::string(fixed_text(event.comm)); }

std::string error_name(std::uint32_t number) {
    const char* name = number < 4096 ? ::strerrorname_np(static_cast<int>(number)) : nullptr;
    return name == nullptr ? fmt::format("errno {}", number) : name;
}

// An event may come from a file.
std::string text_of(const Json& event, const char* member) { return printable(text_member(event, member)); }

std::string amount(const Json& event, const char* member) {
    const auto resource = find_limit(text_of(event, "resource"));
    const auto value = number_member(event, member, unlimited);
    return resource ? format_amount(*resource, value) : std::to_string(value);
}

std::string process_words(const Json& event) { return fmt::format("{} {}", pid_words(event), text_of(event, "comm")); }

std::string repeats(const Json& event) {
    const auto count = number_member(event, "count");
    return count < 2 ? "" : fmt::format(", {} times since {}", count, local_time(text_of(event, "first_time")).substr(0, 19));
}

std::string_view scope_of(const Json& event) {
    const auto known = std::find(scopes.begin(), scopes.end(), text_of(event, "scope"));
    return known == scopes.end() ? "another limit" : scope_words[static_cast<std::size_t>(known - scopes.begin())];
}

// Which limit, and what makes it so when that is not the policy.
std::string limit_words(const Json& event) {
    const auto reason = text_of(event, "reason");
    return fmt::format("{}{}{}", scope_of(event), reason.empty() ? "" : ", by ", reason);
}

std::string error_words(const Json& event) {
    const auto error = text_of(event, "error");
    return error.empty() ? error : "  " + error;
}

std::string words(const Json& event) {
    const auto kind = text_of(event, "kind");
    if (kind == "reaped")
        return fmt::format("{} ended without closing; {} objects uncharged", process_words(event), number_member(event, "used"));
    if (kind == "reconciled")
        return fmt::format("uncharged {} that a killed process had leaked, {} in use", amount(event, "requested"),
                           amount(event, "used"));
    const auto who = fmt::format("{}  {}{}", repeats(event), process_words(event), error_words(event));
    if (kind == "delayed")
        return fmt::format("calls delayed by {} in all, {} a second allowed ({}){}", seconds_words(number_member(event, "used")),
                           amount(event, "limit"), limit_words(event), who);
    if (const auto rate = find_limit(text_of(event, "resource")); rate && is_rate(*rate))
        return fmt::format("{} a second allowed, {} asked at a time when it had to wait longer than max_delay ({}){}",
                           amount(event, "limit"), amount(event, "requested"), limit_words(event), who);
    if (kind == "refused_by_device")
        return fmt::format("{} more asked, the tenant uses {}: the device or its driver refused{}", amount(event, "requested"),
                           amount(event, "used"), who);
    return fmt::format("{} of {} used, {} more asked ({}){}", amount(event, "used"), amount(event, "limit"),
                       amount(event, "requested"), limit_words(event), who);
}

std::string columns(const std::string& time, std::string_view kind, std::string_view tenant, std::string_view user) {
    return fmt::format("{} {:<11} {:<12} {:<8} ", time, kind, tenant, user);
}

}  // namespace

std::string event_time(std::uint64_t time_ns, bool for_people) {
    const auto seconds = static_cast<std::time_t>(time_ns / 1'000'000'000);
    std::tm parts{};
    for_people ? ::localtime_r(&seconds, &parts) : ::gmtime_r(&seconds, &parts);
    const auto date = fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
    const auto clock = fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
    const auto fraction = time_ns % 1'000'000'000;
    return for_people ? fmt::format("{} {}.{:03}", date, clock, fraction / 1'000'000)
                      : fmt::format("{}T{}.{:09}Z", date, clock, fraction);
}

std::string local_time(const std::string& time) {
    std::tm parts{};
    const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr) return printable(time);
    const auto seconds = static_cast<std::uint64_t>(::timegm(&parts));
    return event_time(seconds * 1'000'000'000, true).substr(0, 19) + printable(std::string(rest).substr(0, 4));
}

std::string seconds_words(std::uint64_t ns) {
    const auto ms = ns / 1'000'000;
    return ms < 1000 ? fmt::format("{} ms", ms) : fmt::format("{}.{} s", ms / 1000, ms / 100 % 10);
}

std::string pid_words(const Json& event) {
    constexpr std::uint64_t of_node = 0xEFFFFFFC;  // PROC_PID_INIT_INO (include/linux/proc_ns.h)
    const bool contained = number_member(event, "pid_namespace", of_node) != of_node;
    return fmt::format("pid {}{}", number_member(event, "pid"), contained ? " of a container" : "");
}

std::string event_line(const Json& event) {
    const auto tenant = text_of(event, "tenant"), user = text_of(event, "user");
    auto line = columns(local_time(text_of(event, "time")), text_of(event, "kind"), tenant.empty() ? "-" : tenant,
                        user.empty() ? "-" : user);
    if (const auto pod = text_of(event, "pod"); !pod.empty()) line += "pod " + pod + ": ";
    if (event.contains("source")) return line + text_of(event, "text");
    if (const auto device = text_of(event, "device"); !device.empty()) line += device + " ";
    if (const auto resource = text_of(event, "resource"); !resource.empty()) line += resource + "  ";
    return line + words(event);
}

bool has_user(const Event& event) { return event.kind != EventKind::reconciled; }

// Null where nothing of that is known.
Json bounds_json(const ProcessBounds& bounds) {
    if ((bounds.flags & ProcessBounds::known) == 0) return nullptr;
    const auto limit = [](std::uint64_t amount) { return amount == UINT64_MAX ? Json(nullptr) : Json(amount); };
    return Json{{"can_map", (bounds.flags & ProcessBounds::no_mapping) == 0},
                {"pinned", bounds.pinned},
                {"pinned_limit", (bounds.flags & ProcessBounds::may_pin_all) != 0 ? Json(nullptr) : limit(bounds.pinned_limit)},
                {"address_space", bounds.address_space},
                {"address_space_limit", limit(bounds.address_space_limit)},
                {"memory_cgroup", bounds.group},
                {"memory_cgroup_limit", limit(bounds.group_limit)}};
}

Json event_json(std::uint64_t number, const Event& event, const DeviceNames& devices, const std::string& tenant) {
    const auto device = device_name(event, devices);
    const auto resource = resource_of(event);
    const auto pod = pod_of_tenant(tenant);
    return Json{{"number", number},
                {"time", event_time(event.time_ns, false)},
                {"kind", kind_name(event)},
                {"tenant", tenant},
                {"pod", pod.empty() ? Json(nullptr) : Json(pod)},
                {"device", device ? Json(*device) : Json(nullptr)},
                {"resource", resource ? Json(info(*resource).name) : Json(nullptr)},
                {"scope", name_in(scopes, event.scope)},
                {"reason", event.reason == 0 || event.reason > static_cast<std::uint32_t>(Reason::other)
                               ? Json(nullptr)
                               : Json(name(static_cast<Reason>(event.reason)))},
                {"used", event.used},
                {"limit", limit_json(event.limit)},
                {"requested", event.requested},
                {"count", event.count == 0 ? 1 : event.count},
                {"first_time", event_time(event.first_time_ns == 0 ? event.time_ns : event.first_time_ns, false)},
                {"pid", event.pid},
                {"pid_namespace", event.pid_namespace == 0 ? Json(nullptr) : Json(event.pid_namespace)},
                {"uid", has_user(event) ? Json(event.uid) : Json(nullptr)},
                {"comm", comm_of(event)},
                {"process_bounds", bounds_json(event.bounds)},
                {"error", event.error == 0 ? Json(nullptr) : Json(error_name(event.error))}};
}

}  // namespace rdmaquota
