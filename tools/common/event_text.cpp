#include "tools/common/event_text.hpp"

#include <array>
#include <cstring>
#include <ctime>
#include <optional>

#include <fmt/core.h>

#include "tools/common/json.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

constexpr std::array<std::string_view, 6> kinds{"none", "denied", "would_deny", "unproved", "reaped", "reconciled"};
// By event_scope.
constexpr std::array<std::string_view, 5> scopes{"none", "process", "process_total", "tenant", "tenant_total"};
constexpr std::array<std::string_view, 5> scope_words{"no limit", "process limit", "process limit, sum of devices",
                                                      "tenant limit", "tenant limit, sum of devices"};

template <std::size_t N>
std::string name_in(const std::array<std::string_view, N>& names, std::uint32_t value) {
    return value < N ? std::string(names[value]) : fmt::format("#{}", value);
}

std::optional<std::string> device_name(const Event& event, const DeviceNames& devices) {
    for (const auto& [number, name] : devices)
        if (number == event.device) return name;
    return std::nullopt;
}

std::optional<Resource> resource_of(const Event& event) {
    if (event.resource >= resource_count) return std::nullopt;
    return static_cast<Resource>(event.resource);
}

std::string comm_of(const Event& event) { return {event.comm, strnlen(event.comm, sizeof event.comm)}; }

std::string error_name(std::uint32_t number) {
    const char* name = number < 4096 ? ::strerrorname_np(static_cast<int>(number)) : nullptr;
    return name == nullptr ? fmt::format("errno {}", number) : name;
}

std::string amount(const Event& event, std::uint64_t value) {
    const auto resource = resource_of(event);
    return resource ? format_amount(*resource, value) : std::to_string(value);
}

std::string process_words(const Event& event) { return fmt::format("pid {} {}", event.pid, printable(comm_of(event))); }

std::string denial_words(const Event& event, const std::string& tenant) {
    return fmt::format("{} of {} used, {} more asked  tenant {} ({})  {}{}", amount(event, event.used),
                       amount(event, event.limit), amount(event, event.requested), printable(tenant),
                       name_in(scope_words, event.scope), process_words(event),
                       event.error == 0 ? std::string() : fmt::format("  {}", error_name(event.error)));
}

std::string words(const Event& event, const std::string& tenant) {
    switch (event.kind) {
        case EventKind::reaped:
            return fmt::format("{} ended without closing; {} objects uncharged", process_words(event), event.used);
        case EventKind::reconciled:
            return fmt::format("uncharged {} that a killed process had leaked, {} in use",
                               amount(event, event.requested), amount(event, event.used));
        default:
            return denial_words(event, tenant);
    }
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

std::string event_line(const Event& event, const DeviceNames& devices, const std::string& tenant) {
    auto line = fmt::format("{} {:<11}", event_time(event.time_ns, true),
                            name_in(kinds, static_cast<std::uint32_t>(event.kind)));
    if (const auto device = device_name(event, devices)) line += " " + printable(*device);
    if (const auto resource = resource_of(event)) line += fmt::format(" {}", info(*resource).name);
    return line + "  " + words(event, tenant);
}

std::string sidecar_line(const Json& event) {
    std::tm parts{};
    const auto time = event.value("time", "");
    const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    const auto seconds = static_cast<std::uint64_t>(::timegm(&parts));
    const auto when = rest == nullptr
                          ? time
                          : event_time(seconds * 1'000'000'000, true).substr(0, 19) + std::string(rest).substr(0, 4);
    return fmt::format("{} {:<11} {}", when, printable(event.value("kind", "")), printable(event.value("text", "")));
}

Json event_json(std::uint64_t number, const Event& event, const DeviceNames& devices, const std::string& tenant) {
    const auto device = device_name(event, devices);
    const auto resource = resource_of(event);
    return Json{{"number", number},
                {"time", event_time(event.time_ns, false)},
                {"kind", name_in(kinds, static_cast<std::uint32_t>(event.kind))},
                {"tenant", tenant},
                {"device", device ? Json(*device) : Json(nullptr)},
                {"resource", resource ? Json(info(*resource).name) : Json(nullptr)},
                {"scope", name_in(scopes, event.scope)},
                {"used", event.used},
                {"limit", limit_json(event.limit)},
                {"requested", event.requested},
                {"pid", event.pid},
                {"comm", comm_of(event)},
                {"error", event.error == 0 ? Json(nullptr) : Json(error_name(event.error))}};
}

}  // namespace rdmaquota
