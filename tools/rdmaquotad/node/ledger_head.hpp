// The first words of a ledger, read without mapping it: the cheap way to see whether anything happened there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

struct LedgerHead {
    ino_t inode = 0;            // of the data file; 0: there is none
    bool sound = false;         // it has the size and the header of a ledger of this version
    std::uint64_t claims = 0;   // owner slots ever claimed
    EventCursor events;         // past the last event

    bool operator==(const LedgerHead&) const = default;
};

// Of the ledger in directory `path`. Four system calls, about 5 us. None when it cannot be opened for a reason that says
// nothing of it, such as too many open files.
std::optional<LedgerHead> read_ledger_head(const std::string& path);

}  // namespace rdmaquota
