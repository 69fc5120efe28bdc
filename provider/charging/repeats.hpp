// What this process is denied again and again: a retry loop must fill neither the ring of events nor the log.
//
// A few denials are remembered, by place, in a table without locks; two that share an entry count as new each time.
#pragma once

#include <atomic>
#include <cstdint>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota::provider {

// Counts the event on the last one where that is alike, or records it. `last` keeps that one's number and 1; 0: there is none. True:
// it was counted.
bool count_or_record(Ledger& ledger, std::atomic<std::uint64_t>& last, const Event& event) noexcept;

// Records the event in the ledger, or counts it on the last one where that is alike. `place` is a number of the
// ledger's. `say`: a line is due. `kept_back`: how many lines were not, since the last one.
struct Recorded {
    bool say;
    std::uint32_t kept_back;
};
std::uint64_t monotonic_s() noexcept;
Recorded record_or_repeat(Ledger& ledger, std::uint64_t place, const Event& event,
                          std::uint64_t now_s = monotonic_s()) noexcept;

// All that were kept back and not told of since; they count as told then.
std::uint32_t take_kept_back() noexcept;

inline constexpr std::uint64_t quiet_s = 10;

}  // namespace rdmaquota::provider
