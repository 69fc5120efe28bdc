#include "policy/subject_text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace rdmaquota {
namespace {

constexpr std::string_view root = "/";

// Takes the part before the next `end` from the front of `text`; none when there is no `end`.
std::optional<std::string_view> take_until(std::string_view& text, char end) noexcept {
    const auto at = text.find(end);
    if (at == text.npos) return std::nullopt;
    const auto part = text.substr(0, at);
    text.remove_prefix(at + 1);
    return part;
}

// Takes a number and the blanks in front of it.
std::optional<std::uint32_t> take_number(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool lists(std::string_view controllers, std::string_view wanted) noexcept {
    while (const auto controller = take_until(controllers, ','))
        if (*controller == wanted) return true;
    return controllers == wanted;
}

// The path in the hierarchy with this controller; the unified one has none. Each line is "ID:CONTROLLERS:PATH".
std::optional<std::string_view> path_in(std::string_view text, std::string_view controller) noexcept {
    while (auto line = take_until(text, '\n')) {
        const auto id = take_until(*line, ':');
        const auto controllers = id ? take_until(*line, ':') : std::nullopt;
        if (controllers && (*id == "0") == controller.empty() && lists(*controllers, controller)) return *line;
    }
    return std::nullopt;
}

// A path as matches see it; empty where it is outside the reader's cgroup namespace.
std::string_view usable(std::string_view path) noexcept {
    constexpr std::string_view deleted = " (deleted)";  // a cgroup that was removed after its last process ended
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
    return path.starts_with(root) && path != "/.." && !path.starts_with("/../") ? path : std::string_view{};
}

// The text after "NAME:" in the line that begins so.
std::optional<std::string_view> field(std::string_view text, std::string_view name) noexcept {
    while (auto line = take_until(text, '\n'))
        if (take_until(*line, ':') == name) return *line;
    return std::nullopt;
}

// "REAL EFFECTIVE SAVED FILESYSTEM"
std::optional<std::uint32_t> effective_id(std::string_view status, std::string_view name) noexcept {
    auto ids = field(status, name);
    return ids && take_number(*ids) ? take_number(*ids) : std::nullopt;
}

}  // namespace

std::string_view cgroup_path(std::string_view text) noexcept {
    auto best = path_in(text, "");
    for (const std::string_view controller : {"rdma", "pids", "name=systemd"}) {
        if (best && *best != root) break;
        if (const auto path = path_in(text, controller)) best = path;
    }
    return best ? usable(*best) : std::string_view{};
}

std::optional<std::uint32_t> id_outside(std::string_view map, std::uint32_t id) noexcept {
    while (auto line = take_until(map, '\n')) {
        const auto inside = take_number(*line);
        const auto outside = inside ? take_number(*line) : std::nullopt;
        const auto count = outside ? take_number(*line) : std::nullopt;
        if (!count || id < *inside || id - *inside >= *count) continue;
        const auto number = std::uint64_t{*outside} + (id - *inside);
        if (number < UINT32_MAX) return static_cast<std::uint32_t>(number);
    }
    return std::nullopt;
}

ProcessIds process_ids(std::string_view status) {
    ProcessIds ids{effective_id(status, "Uid"), effective_id(status, "Gid"), {}};
    if (auto groups = field(status, "Groups"))
        while (const auto group = take_number(*groups)) ids.groups.push_back(*group);
    return ids;
}

}  // namespace rdmaquota
