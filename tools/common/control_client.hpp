// One request to the sidecar, rdmaquotad, over the control socket of a quota directory.
#pragma once

#include <chrono>
#include <string>

#include "policy/result.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

std::string control_path(const std::string& directory);

// Whether a sidecar runs there, also one that is stopped and answers nothing.
bool sidecar_listens(const std::string& directory);

// Sends `request`, to which the version is added, and returns the answer. An error when no sidecar runs, when it does
// not answer in time, and when it refuses, with its reason.
Result<Json> ask_sidecar(const std::string& directory, Json request,
                         std::chrono::milliseconds patience = std::chrono::seconds(2));

// The same of the program that listens at `path`.
Result<Json> ask_at(const std::string& path, Json request, std::chrono::milliseconds patience, const std::string& program);

}  // namespace rdmaquota
