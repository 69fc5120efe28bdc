// Soft limits: a tenant may be above one for its grace period; then it acts as the limit, until usage is below it.
#pragma once

#include <cstdint>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota::provider {

struct SoftLimit {
    std::uint64_t soft;  // `unlimited`: there is none
    std::uint64_t hard;
    std::uint32_t grace_s;
};

// The limit that holds now for `amount` more of a resource: the soft one while the charge stays below it or the grace
// period is over, else the hard one. A charge that crosses the soft limit upwards notes the time in the ledger
// (CLOCK_BOOTTIME, so that it counts while the machine sleeps). Any thread; never waits.
std::uint64_t limit_now(Ledger& ledger, std::uint32_t device, Resource resource, std::uint64_t amount,
                        const SoftLimit& limit) noexcept;

}  // namespace rdmaquota::provider
