// Whether threads are preempted in the kernel. Where they are, it skips BPF programs for fentry and fexit now and then
// (bpf/probes.bpf.h).
#pragma once

#include <string_view>

namespace rdmaquota {

// Of the running kernel. True where it cannot be told.
bool preempts_threads();

// The same by what the kernel says of itself: debugfs' sched/preempt, in which the mode is in parentheses (empty: not
// readable); uname's version, which names what was compiled in; the command line, which may name the mode.
bool preempts_threads(std::string_view modes, std::string_view version, std::string_view command_line);

}  // namespace rdmaquota
