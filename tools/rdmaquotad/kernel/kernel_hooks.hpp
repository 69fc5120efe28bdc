// The functions of the kernel that are watched, and the BPF program for each (bpf/kernel_counts.bpf.c says why).
#pragma once

#include <cstdint>
#include <span>

namespace rdmaquota {

struct Hook {
    enum class By : std::uint8_t { kprobe, fexit } by;
    const char* function;
    const char* program;
    const char* unknown;  // what is not known without it; null: nothing is
};

inline constexpr const char* late_return = "a process's end is not seen; its usage comes back a second later";

// In the order in which they are attached, which takes a while: whatever is counted must be seen to end, and nothing
// may be missing from a file that was seen being opened.
std::span<const Hook> kernel_hooks();

}  // namespace rdmaquota
