#include "tools/rdmaquotad/bypass/process_info.hpp"

#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "tools/common/text/file_text.hpp"
#include "tools/common/process/process_stat.hpp"
#include "tools/rdmaquotad/kernel/kernel_tables.hpp"

namespace rdmaquota {
namespace {

constexpr int most_threads = 64;

// proc_pid_statm(5): the first figure is the size of all that is mapped.
bool has_memory(const std::string& directory) {
    return std::strtoull(file_text(directory + "/statm").c_str(), nullptr, 10) != 0;
}

}  // namespace

// proc_pid_stat(5): the command is in brackets and may contain anything.
std::optional<ProcessInfo> process_info(std::uint32_t pid) {
    const auto stat = file_text(fmt::format("/proc/{}/stat", pid));
    const auto opening = stat.find('('), closing = stat.rfind(')');
    if (opening == stat.npos || closing == stat.npos) return std::nullopt;
    return ProcessInfo{stat.substr(opening + 1, closing - opening - 1), start_time_in(stat)};
}

std::string proc_directory_with_memory(std::uint32_t pid) {
    const auto directory = fmt::format("/proc/{}", pid);
    if (has_memory(directory)) return directory;
    std::error_code gone;
    std::filesystem::directory_iterator thread(directory + "/task", gone);
    for (int looked = 0; !gone && thread != std::filesystem::directory_iterator() && looked < most_threads; ++looked) {
        if (has_memory(thread->path())) return thread->path();
        thread.increment(gone);
    }
    return {};
}

bool is_ending(std::uint32_t pid) {
    if (!proc_directory_with_memory(pid).empty()) return false;
    std::error_code unknown;
    return std::filesystem::exists(fmt::format("/proc/{}", pid), unknown) || has_ended(pid);
}

const std::optional<ProcessInfo>& ProcessInfoCache::of(std::uint32_t pid) {
    const auto found = known_.find(pid);
    return found != known_.end() ? found->second : known_[pid] = process_info(pid);
}

void ProcessInfoCache::keep_only(const std::set<std::uint32_t>& pids) {
    std::erase_if(known_, [&pids](const auto& entry) { return !pids.contains(entry.first); });
}

}  // namespace rdmaquota
