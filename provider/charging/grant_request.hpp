// Asks the sidecar for a larger share of what the tenants above may use.
#pragma once

#include <cstdint>

#include "provider/charging/account.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota::provider {

// Notes in the ledger what a denied charge wanted, asks the sidecar and waits for its answer, until `deadline_ns`
// (CLOCK_MONOTONIC) at the longest; returns at once where none runs. What came of it is to be seen in the limits. False when
// there is no time left. Opens a socket for that time. Keeps errno.
bool ask_for_share(Account& account, std::uint32_t device, const Denial& denial, std::uint64_t deadline_ns) noexcept;

std::uint64_t monotonic_ns() noexcept;

}  // namespace rdmaquota::provider
