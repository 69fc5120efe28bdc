#include "tools/rdmaquota/view/event_filter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>

#include <fmt/core.h>

#include "policy/file/did_you_mean.hpp"
#include "policy/printable.hpp"
#include "tools/common/events/event_kinds.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

bool is_one_of(const std::vector<std::string>& wanted, const Json& event, const char* member) {
    if (wanted.empty()) return true;
    const auto value = event.find(member);
    if (value == event.end() || !value->is_string()) return false;
    const auto text = value->get<std::string>();
    return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& one) {
        return text == one || (member == std::string_view("device") && text.starts_with(one + "/"));
    });
}

std::optional<std::int64_t> duration_s(std::string_view text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> units{
        {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86'400}, {"w", 7 * 86'400}}};
    for (const auto& [name, seconds] : units)
        if (unit == name) return number * seconds;
    return std::nullopt;
}

// All of the text, in local time; what the format leaves out is as in `base`.
std::optional<std::time_t> local_time(const std::string& text, const char* format, std::tm base) {
    const char* rest = ::strptime(text.c_str(), format, &base);
    if (rest == nullptr || *rest != '\0') return std::nullopt;
    base.tm_isdst = -1;
    return std::mktime(&base);
}

std::string event_time_of(std::int64_t seconds) {
    return event_time(static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0)) * 1'000'000'000, false);
}

}  // namespace

bool EventFilter::admits(const Json& event) const {
    if (!since.empty() && event.value("time", "") < since) return false;
    return is_one_of(kinds, event, "kind") && is_one_of(tenants, event, "tenant") && is_one_of(users, event, "user") &&
           is_one_of(devices, event, "device");
}

Result<std::string> parse_since(std::string_view text, std::int64_t now_s) {
    if (const auto ago = duration_s(text)) return event_time_of(now_s - *ago);
    const auto now = static_cast<std::time_t>(now_s);
    std::tm midnight{};
    ::localtime_r(&now, &midnight);
    midnight.tm_hour = midnight.tm_min = midnight.tm_sec = 0;
    for (const char* format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"})
        if (const auto at = local_time(std::string(text), format, midnight)) return event_time_of(*at);
    return Error{fmt::format("'{}' is no time; write 90s, 5min, 1h or 2d, 12:30, 2026-01-31 or '2026-01-31 12:30'",
                             printable(text))};
}

Result<void> check_kinds(const std::vector<std::string>& kinds) {
    std::vector<std::string_view> known(ledger_kinds.begin(), ledger_kinds.end());
    known.insert(known.end(), sidecar_kinds.begin(), sidecar_kinds.end());
    for (const auto& kind : kinds)
        if (!is_event_kind(kind))
            return Error{fmt::format("'{}' is no kind of event{}; rdmaquota-events(1) lists them", printable(kind),
                                     did_you_mean(kind, known))};
    return {};
}

}  // namespace rdmaquota
