// What kernel and ledger say at one look. The two are read one after the other.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger_copy.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

using ProcessDevice = std::pair<std::uint32_t, std::string>;

struct Observation {
    std::chrono::steady_clock::time_point at;
    const std::vector<KernelUse>& uses;
    std::array<bool, resource_count> known;  // by index(Resource): whether `uses` has it
    bool attached;                           // `uses` comes from the program in the kernel, not from netlink alone
    // Of processes that started at this time or later, `uses` has everything; clock ticks since boot.
    std::uint64_t complete_since;

    const LedgerCopy& ledger;
    const std::string& ledger_path;
    const std::set<std::string>& devices;  // of this machine; others in the ledger anyone may have invented
    // Programs charge this ledger by default. Otherwise processes without a slot in it are not its concern.
    bool everyone;
};

}  // namespace rdmaquota
