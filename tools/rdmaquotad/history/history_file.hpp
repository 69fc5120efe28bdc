// DIR/history.json, which keeps the history over a restart: the answer to the request "history", replaced in one step.
#pragma once

#include <cstdint>
#include <string>

#include "policy/result.hpp"
#include "tools/rdmaquotad/history/history.hpp"

namespace rdmaquota {

// `time_s` is CLOCK_REALTIME, of the last sample.
Result<void> save_history(const std::string& directory, const History& history, std::uint64_t time_s);

// An empty history when there is no file. An error when the file cannot be used, or is of a time after `now_s`.
Result<History> load_history(const std::string& directory, std::uint64_t now_s);

}  // namespace rdmaquota
