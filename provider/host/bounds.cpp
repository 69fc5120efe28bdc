#include "provider/host/bounds.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <sys/mman.h>
#include <sys/resource.h>

#include "policy/subject_text.hpp"
#include "provider/host/read_text.hpp"

namespace rdmaquota::provider {
namespace {

constexpr unsigned cap_ipc_lock = 14;  // linux/capability.h
constexpr std::uint64_t none = UINT64_MAX;

std::string text_of(const std::string& path) { return read_text(path).value_or(""); }

std::optional<std::uint64_t> number_in(std::string_view text, int base = 10) noexcept {
    const auto begin = text.find_first_not_of(" \t");
    if (begin == text.npos) return std::nullopt;
    std::uint64_t number = 0;
    const auto found = std::from_chars(text.data() + begin, text.data() + text.size(), number, base);
    return found.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// The number that follows `key` in the text; 0 where the text lacks the key.
std::uint64_t after(std::string_view text, std::string_view key, int base = 10) noexcept {
    const auto at = text.find(key);
    return at == text.npos ? 0 : number_in(text.substr(at + key.size()), base).value_or(0);
}

std::uint64_t limit_of(__rlimit_resource which) noexcept {
    rlimit limit{};
    return ::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? none : limit.rlim_cur;
}

// A shared one is never merged with another.
bool can_map() noexcept {
    void* page = ::mmap(nullptr, 4096, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    ::munmap(page, 4096);
    return true;
}

void read_groups(const std::string& cgroups, ProcessBounds& bounds) {
    const auto text = text_of("/proc/self/cgroup");
    auto path = cgroups + std::string(cgroup_path(text));
    auto least = none;
    while (path.size() >= cgroups.size()) {
        const auto used = number_in(text_of(path + "/memory.current")), most = number_in(text_of(path + "/memory.max"));
        const auto room = used && most ? *most - std::min(*most, *used) : none;
        if (room < least) least = room, bounds.group = *used, bounds.group_limit = *most;
        path.resize(std::min(path.rfind('/'), path.size() - 1));
    }
}

}  // namespace

ProcessBounds bounds_of_self(const std::string& cgroups) {
    const auto status = text_of("/proc/self/status");
    constexpr std::uint64_t kib = 1024;
    ProcessBounds bounds{ProcessBounds::known, after(status, "\nVmPin:") * kib, limit_of(RLIMIT_MEMLOCK),
                         after(status, "\nVmSize:") * kib, limit_of(RLIMIT_AS), 0, none};
    if (!can_map()) bounds.flags |= ProcessBounds::no_mapping;
    if ((after(status, "\nCapEff:", 16) >> cap_ipc_lock & 1) != 0) bounds.flags |= ProcessBounds::may_pin_all;
    read_groups(cgroups, bounds);
    return bounds;
}

}  // namespace rdmaquota::provider
