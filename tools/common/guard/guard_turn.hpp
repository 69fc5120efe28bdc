// Who gives rows of a kept guard to tenants: one process at a time, since two would give one row to two tenants.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/common/open_file.hpp"

namespace rdmaquota {

// Waits until no other process has its turn, or for `patience` at most, and then goes on without. It lasts as long as what is
// returned: a lock of the directory where the guard is pinned.
OpenFile take_turn(const std::string& pins, std::optional<std::chrono::milliseconds> patience = std::nullopt);

}  // namespace rdmaquota
