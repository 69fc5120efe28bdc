// The log line and the event of a denial.
#pragma once

#include <string>
#include <string_view>

#include "provider/charging/account.hpp"

namespace rdmaquota::provider {

// Records the denial (in audit mode: would-be denial) in the ledger and logs it.
void report(Account& account, std::uint32_t device_index, std::string_view device, const Denial& denial, Mode mode,
            int error);

// Whether it is the soft limit that was met.
bool is_soft(const LimitsSegment& limits, std::string_view device, const Denial& denial) noexcept;

// Logs that an object was denied because an account cannot be used.
void report_unavailable(std::string_view device, int error);

// The log line without its prefix; for tests. `reason` is why the limit is what it is.
std::string denial_line(std::string_view device, const Denial& denial, Mode mode, int error,
                        const std::string& directory, const std::string& tenant, Reason reason, const Identity& who);

}  // namespace rdmaquota::provider
