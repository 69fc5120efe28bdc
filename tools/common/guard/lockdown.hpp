// Whether the kernel lets BPF programs read its memory.
#pragma once

#include <string_view>

namespace rdmaquota {

inline constexpr std::string_view locked_down = "the kernel is locked down (confidentiality)";

// kernel_lockdown(7): in this mode it does not. False where securityfs is not mounted, too.
bool is_locked_down();

}  // namespace rdmaquota
