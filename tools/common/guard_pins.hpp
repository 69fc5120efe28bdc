// What the kernel keeps of the guard while no sidecar runs: links of its BPF programs, in a directory for each program that
// a sidecar has loaded, below /sys/fs/bpf/rdmaquota. Mostly there is one; two while a new sidecar takes over.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct GuardPins {
    // The directories that there are; empty: the kernel keeps nothing.
    static std::vector<std::string> all();
    // Makes one more. Mounts the file system of BPF where the node has none.
    static Result<std::string> fresh();
    // The guard that it kept ends, unless a sidecar holds it.
    static Result<void> remove(const std::string& directory);
};

}  // namespace rdmaquota
