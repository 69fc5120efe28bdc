// Processes by the names that others have for them. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

// A process as the ledger knows it: its pid in its own namespace and when it started.
struct LedgerName {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;
    auto operator<=>(const LedgerName&) const = default;
};

// What /proc says of process `pid` of this namespace as it would enter itself in a ledger; nullopt when it is gone.
std::optional<Identity> identity_of(std::uint32_t pid);

// Remembers what processes are called as long as they are asked for.
class ProcessNames {
public:
    // nullopt: it is gone.
    const std::optional<Identity>& of(std::uint32_t pid);
    void keep_only(const std::set<std::uint32_t>& pids);

private:
    std::map<std::uint32_t, std::optional<Identity>> known_;
};

// SIGKILL for that very process; false when it is gone or another has its pid.
bool kill_process(std::uint32_t pid, std::uint64_t start_time);

}  // namespace rdmaquota
