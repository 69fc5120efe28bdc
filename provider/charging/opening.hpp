// What is logged, below warnings, of what goes as it should: for those who want to see whether and how a program is
// held.
#pragma once

#include <string>

#include "provider/charging/device_port.hpp"

namespace rdmaquota::provider {

// At the level info, once for each account: for which tenant, by which rule, and where limits come from.
std::string activity_line(Account& account, const std::string& rule);

// At the level debug, for a device that is opened: what is limited there. Nothing while that level is off. Throws only
// std::bad_alloc.
void report_opening(const DevicePort& device, const Accounts& accounts);

}  // namespace rdmaquota::provider
