// The history as the control socket tells it; see rdmaquotad(8).
#pragma once

#include "tools/rdmaquota/json.hpp"
#include "tools/rdmaquotad/history.hpp"
#include "tools/rdmaquotad/request.hpp"

namespace rdmaquota {

// The series that the request asks for; `time_s` is CLOCK_REALTIME.
Json history_json(const History& history, const Request& request, std::uint64_t time_s);

}  // namespace rdmaquota
