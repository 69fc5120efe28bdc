// What /proc says of a process. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace rdmaquota {

struct ProcessInfo {
    std::string comm;              // not yet safe to print
    std::uint64_t start_time = 0;  // clock ticks since boot; says how old it is, not which process it is
};

// Process `pid` of this pid namespace; nullopt when it is gone.
std::optional<ProcessInfo> process_info(std::uint32_t pid);

// The directory in /proc of a thread of this process that has memory: of the first thread, unless that one ended before
// the others, of which 64 are looked at. Empty for a process that is gone or ending: the kernel takes its memory, and
// with it what it has mapped and the locks of that, a moment before it closes its files.
std::string proc_directory_with_memory(std::uint32_t pid);

// Whether a process is gone, or ending. Not of one that /proc hides.
bool is_ending(std::uint32_t pid);

// Reads each process once.
class ProcessInfoCache {
public:
    const std::optional<ProcessInfo>& of(std::uint32_t pid);
    void keep_only(const std::set<std::uint32_t>& pids);  // forgets all others

private:
    std::map<std::uint32_t, std::optional<ProcessInfo>> known_;
};

}  // namespace rdmaquota
