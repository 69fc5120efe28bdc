#pragma once

#include <string>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// Why no kernel of that machine and release, as uname(2) has them, can have the guard: it needs BPF trampolines, which x86-64 has
// had before what else the guard uses came in 5.18, and arm64 since 6.4. "": it may.
std::string too_old_for_guard(const std::string& machine, const std::string& release);

// Whether the kernel refuses what exceeds a limit now.
bool guard_refuses(const std::string& directory);

void examine_guard(Findings& findings, const std::string& directory);

}  // namespace rdmaquota
