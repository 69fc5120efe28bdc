// The provider's only voice: one line per message, to where the policy says.
//
// Never through the host's own streams: a line is one write(2). Standard error is used only while
// descriptor 2 is still what it was when this library was loaded, or is opened for appending, and is
// no file that the program opened for itself: a program that closes stderr may get a data file on
// that number. No line waits for its reader and none raises SIGPIPE. At most ten lines a second; the
// next line says how many were left out. errno is kept.
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.hpp"

namespace rdmaquota::provider::log {

struct Target {
    LogLevel level = LogLevel::warning;
    LogTarget target = LogTarget::standard_error;
    std::string file;
};

// Called once from the constructor, single-threaded.
void remember_standard_error() noexcept;

void write(const Target& target, LogLevel level, std::string_view message) noexcept;

}  // namespace rdmaquota::provider::log
