// Processes by the names that others have for them. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

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

}  // namespace rdmaquota
