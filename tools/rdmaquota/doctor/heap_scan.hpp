// Looks through what another process has allocated.
#pragma once

#include <cstdint>
#include <functional>

#include "tools/rdmaquota/doctor/process_memory.hpp"

namespace rdmaquota {

// Calls `see(address, word)` for each word of allocated memory (private, writable, of no file) until it returns false.
// Pages without contents are skipped, so that large reservations cost little. Ends after 1 GiB of contents or 4 TiB of
// addresses, of which no mapping gets more than 64 GiB.
void scan_heap(const ProcessMemory& memory, const std::function<bool(std::uint64_t, std::uint64_t)>& see);

}  // namespace rdmaquota
