// Prints the history that the sidecar keeps: a sparkline for each tenant, device and resource.
#pragma once

#include <string>

#include "tools/common/views/json_fwd.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {

// `answer` is rdmaquotad's to "history". For each tenant three lines for each of its series: seconds, minutes, hours.
void print_history(const Terminal& terminal, const Json& answer);

// The last `cells` values as a row of bars, the largest value the highest. Null is a space.
std::string sparkline(bool unicode, const Json& values, std::size_t cells);

}  // namespace rdmaquota
