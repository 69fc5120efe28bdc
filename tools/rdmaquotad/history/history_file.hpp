// DIR/history.json, by which history outlives the sidecar: its answer to the request "history", replaced in one step.
#pragma once

#include <cstdint>
#include <string>

#include "policy/result.hpp"
#include "tools/rdmaquotad/history/history.hpp"

namespace rdmaquota {

// `time_s` is CLOCK_REALTIME, of the last sample.
Result<void> save_history(const std::string& directory, const History& history, std::uint64_t time_s);

// What was saved; nothing where there is no file, and an error when it cannot be used or was written after `now_s`.
Result<History> load_history(const std::string& directory, std::uint64_t now_s);

}  // namespace rdmaquota
