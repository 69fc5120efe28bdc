// Creations that the limits allowed and that the real call failed: the kernel, the driver or the adapter had no more.
// Recorded as events, so that what a device really has can be learned, which is less than it tells at times.
#pragma once

#include <cstdint>
#include <string_view>

#include "provider/charging/account.hpp"
#include "provider/charging/kind.hpp"

namespace rdmaquota::provider {

struct Shortage {
    Kind kind;
    std::uint64_t size;  // of the object that was not made
    int error;
};

// Whether a call that failed so may have met the end of something; other errors are the program's own.
bool is_shortage(int error) noexcept;

// Records it, repeats as one event, and logs a line at the level info.
void report_shortage(Account& account, std::uint32_t device_index, std::string_view device, const Shortage&) noexcept;

}  // namespace rdmaquota::provider
