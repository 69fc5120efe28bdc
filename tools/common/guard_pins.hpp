// What the kernel keeps of the guard while no sidecar runs: links of its BPF programs, in a directory for each program that
// a sidecar has loaded, below /sys/fs/bpf/rdmaquota. Mostly there is one; two while a new sidecar takes over.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct GuardPins {
    // The directories that there are; empty: the kernel keeps nothing.
    static std::vector<std::string> all();
    // Makes one more. Mounts the file system of BPF where the node has none.
    static Result<std::string> fresh();
    // Names in a directory: what looks at requests, and the rest.
    static std::string look(std::size_t number);
    static std::string rest(std::size_t number);
    // The guard that it kept ends, unless a sidecar holds it. The looks go last: what is made without having been looked at
    // would be taken for a way around.
    static Result<void> remove(const std::string& directory);
};

}  // namespace rdmaquota
