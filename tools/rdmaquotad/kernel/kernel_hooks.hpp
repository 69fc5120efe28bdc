// The functions of the kernel that are watched, and the BPF programs for each (bpf/kernel_counts.bpf.c says why).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace rdmaquota {

// How to watch: by fentry and fexit; the same with kprobes where another thread could be preempted in an fentry program,
// which the kernel then skips; the same where kprobes read memory as directly as fentry programs; by kprobes alone
// (bpf/probes.bpf.h).
enum class Way : std::uint8_t { fentry = 1, preempted = 2, kprobe = 4, directly = 8 };

inline bool is_mixed(Way way) { return way == Way::preempted || way == Way::directly; }

struct Hook {
    std::uint8_t ways;
    const char* function;
    std::initializer_list<const char*> programs;
    const char* unknown;  // what is not known without them; null: nothing is

    bool is_for(Way way) const noexcept { return (ways & static_cast<std::uint8_t>(way)) != 0; }
};

inline constexpr const char* late_return = "a process's end is not seen; its usage comes back a second later";

inline bool is_probe(std::string_view program) { return program.starts_with("probe_"); }

// In the order in which they are attached, which takes a while: whatever is counted must be seen to end, and nothing
// may be missing from a file that was seen being opened.
std::span<const Hook> kernel_hooks();

}  // namespace rdmaquota
