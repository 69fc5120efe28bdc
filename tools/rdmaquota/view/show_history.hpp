// The history that the sidecar keeps, for people: a sparkline for each tenant, device and resource.
#pragma once

#include <string>

#include "tools/common/json.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {

// `answer` is what rdmaquotad says to "history". Three lines for each series: seconds, minutes, hours.
void print_history(const Terminal& terminal, const Json& answer);

// Values as a row of signs of growing height, the largest as the highest; the last `cells` of them. A
// value that is null is a space.
std::string sparkline(bool unicode, const Json& values, std::size_t cells);

}  // namespace rdmaquota
