// How the provider logs: one line per message, by one write(2), never through the host program's own streams.
//
// A program that closes stderr may get a data file on descriptor 2. So standard error is used only while descriptor 2
// is what it was when this library was loaded, or is open for appending, and is not a file that the program opened for
// itself. A log file that cannot be appended to gives way to standard error. No line waits for its reader, and none raises
// SIGPIPE. At most ten lines are written in a second; the next line says how many were left out. errno is kept.
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.hpp"

namespace rdmaquota::provider::log {

struct Target {
    LogLevel level = LogLevel::warning;
    LogTarget target = LogTarget::standard_error;
    std::string file;
    bool operator==(const Target&) const = default;
};

// Called once from the constructor, single-threaded.
void remember_standard_error() noexcept;

void write(const Target& target, LogLevel level, std::string_view message) noexcept;

}  // namespace rdmaquota::provider::log
