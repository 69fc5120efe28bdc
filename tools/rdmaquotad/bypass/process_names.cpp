#include "tools/rdmaquotad/bypass/process_names.hpp"

#include <cstdlib>
#include <sstream>

#include <fmt/core.h>

#include "tools/common/file_text.hpp"

namespace rdmaquota {
namespace {

// The numbers of a line "NAME: a b c" of /proc/PID/status.
std::istringstream status_line(const std::string& status, const std::string& name) {
    const auto at = status.find("\n" + name + ":");
    if (at == status.npos) return std::istringstream();
    const auto from = at + name.size() + 2;
    return std::istringstream(status.substr(from, status.find('\n', from) - from));
}

// proc_pid_stat(5): the command stands in brackets and may hold anything; field 22 is the start time.
std::uint64_t start_time_in(const std::string& stat) {
    std::istringstream rest(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
    std::string word;
    for (int field = 3; field <= 22; ++field) rest >> word;
    return std::strtoull(word.c_str(), nullptr, 10);
}

}  // namespace

std::optional<Identity> identity_of(std::uint32_t pid) {
    const auto stat = file_text(fmt::format("/proc/{}/stat", pid));
    const auto status = file_text(fmt::format("/proc/{}/status", pid));
    const auto opening = stat.find('('), closing = stat.rfind(')');
    if (status.empty() || opening == stat.npos || closing == stat.npos) return std::nullopt;
    Identity identity{pid, 0, start_time_in(stat), stat.substr(opening + 1, closing - opening - 1)};
    status_line(status, "Uid") >> identity.uid;
    // Its pid in each namespace, the innermost last.
    for (auto numbers = status_line(status, "NSpid"); numbers >> identity.pid;) {}
    return identity;
}

const std::optional<Identity>& ProcessNames::of(std::uint32_t pid) {
    const auto found = known_.find(pid);
    return found != known_.end() ? found->second : known_[pid] = identity_of(pid);
}

void ProcessNames::keep_only(const std::set<std::uint32_t>& pids) {
    std::erase_if(known_, [&pids](const auto& entry) { return !pids.contains(entry.first); });
}

}  // namespace rdmaquota
