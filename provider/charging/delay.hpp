// The event and the log line of calls that a rate delays.
#pragma once

#include "provider/charging/account.hpp"

namespace rdmaquota::provider {

// `delay`: which rate, and, in `used`, for how many ns the call was delayed. What one rate does to this process is one event with a
// count. A line comes when its calls were delayed by a second in all since the last line, and ten seconds after that at the
// earliest.
void report_delay(Account& account, std::uint32_t device_index, DeviceKey device, const Denial& delay);

}  // namespace rdmaquota::provider
