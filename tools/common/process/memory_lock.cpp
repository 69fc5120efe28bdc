#include "tools/common/process/memory_lock.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

constexpr unsigned cap_ipc_lock = 14;  // linux/capability.h

// What follows `name` on a line of its own in a file of /proc; empty where it is not there.
std::string_view line_of(std::string_view text, std::string_view name) {
    const auto at = text.find(name);
    if (at == text.npos || (at != 0 && text[at - 1] != '\n')) return {};
    const auto begin = text.find_first_not_of(" \t", at + name.size());
    return begin == text.npos ? std::string_view() : text.substr(begin, text.find('\n', begin) - begin);
}

std::uint64_t number(std::string_view text, int base) {
    return std::strtoull(std::string(text).c_str(), nullptr, base);
}

}  // namespace

std::optional<MemoryLock> memory_lock(int pid) {
    const auto limits = file_text(fmt::format("/proc/{}/limits", pid));
    const auto status = file_text(fmt::format("/proc/{}/status", pid));
    const auto limit = line_of(limits, "Max locked memory");
    if (limit.empty() || status.empty()) return std::nullopt;
    return MemoryLock{limit.starts_with("unlimited") ? UINT64_MAX : number(limit, 10),
                      number(line_of(status, "VmPin:"), 10) * 1024,
                      (number(line_of(status, "CapEff:"), 16) >> cap_ipc_lock & 1) != 0};
}

}  // namespace rdmaquota
