// The log line and the event of a denial.
#pragma once

#include <string>
#include <string_view>

#include "provider/charging/account.hpp"
#include "shm/remedy.hpp"

namespace rdmaquota::provider {

// Records the denial (in audit mode: would-be denial) in the ledger and logs it. What a process is denied again and again is
// one event with a count, and one line in ten seconds, which says how many came between.
void report(Account& account, std::uint32_t device_index, DeviceKey device, const Denial& denial, Mode mode,
            int error);

// Says how many denials were kept back since the last line, if any. Call it when an account is left; keeps errno.
void report_suppressed() noexcept;

// Logs that an object was denied because an account cannot be used.
void report_unavailable(std::string_view device, int error);

// "this process", "tenant physics": whose limit it is.
std::string holder_word(const Denial& denial, const std::string& tenant);
Event event_of(std::uint32_t device_index, const Denial& denial, Mode mode, int error, Reason reason, const Identity& who);

// The log line without its prefix; for tests. `kept_back`: lines like it, since the last one.
std::string denial_line(std::string_view device, const Denial& denial, Mode mode, int error, const Circumstances& found,
                        const Identity& who, std::uint32_t kept_back = 0);

}  // namespace rdmaquota::provider
