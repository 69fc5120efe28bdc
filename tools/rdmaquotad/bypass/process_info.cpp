#include "tools/rdmaquotad/bypass/process_info.hpp"

#include <cstdlib>
#include <sstream>

#include <fmt/core.h>

#include "tools/common/file_text.hpp"

namespace rdmaquota {

// proc_pid_stat(5): the command stands in brackets and may hold anything; field 22 is the start time.
std::optional<ProcessInfo> process_info(std::uint32_t pid) {
    const auto stat = file_text(fmt::format("/proc/{}/stat", pid));
    const auto opening = stat.find('('), closing = stat.rfind(')');
    if (opening == stat.npos || closing == stat.npos) return std::nullopt;
    std::istringstream rest(stat.substr(closing + 1));
    std::string word;
    for (int field = 3; field <= 22; ++field) rest >> word;
    return ProcessInfo{stat.substr(opening + 1, closing - opening - 1), std::strtoull(word.c_str(), nullptr, 10)};
}

const std::optional<ProcessInfo>& ProcessInfoCache::of(std::uint32_t pid) {
    const auto found = known_.find(pid);
    return found != known_.end() ? found->second : known_[pid] = process_info(pid);
}

void ProcessInfoCache::keep_only(const std::set<std::uint32_t>& pids) {
    std::erase_if(known_, [&pids](const auto& entry) { return !pids.contains(entry.first); });
}

}  // namespace rdmaquota
