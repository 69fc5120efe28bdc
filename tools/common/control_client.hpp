// One request to the sidecar, rdmaquotad, over the control socket of a quota directory.
#pragma once

#include <chrono>
#include <string>

#include "policy/result.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {

std::string control_path(const std::string& directory);

// The answer to {"version":1,"request":...}. An error when no sidecar runs, none answers in time, or it refuses, with
// its reason.
Result<Json> ask_sidecar(const std::string& directory, Json request,
                         std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace rdmaquota
