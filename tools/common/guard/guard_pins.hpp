// What the kernel keeps of the guard while no sidecar runs: maps and links of its BPF program, in one directory below
// /sys/fs/bpf/rdmaquota, named by the program's version. While a sidecar of another version takes over there are two.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct GuardPins {
    // The directories that there are; empty: the kernel keeps nothing.
    static std::vector<std::string> all();
    // False: this process may not see whether there are any.
    static bool visible();
    static std::string of_version(const std::string& version);
    // Makes an empty directory to pin into, "new". Mounts the file system of BPF where the node has none.
    static Result<std::string> fresh();
    // Gives it its name, at once. What had that name before is "old" then.
    static Result<void> publish(const std::string& version);

    // What could not be pinned whole: gone, without a change to what the guard does.
    static void discard_fresh();

    // The names in a directory of a map, and of a program's link.
    static std::string map(std::string name);
    static std::string link(const std::string& program);

    // The map whose first word says what the guard does, in every version; pinned before any link is.
    static constexpr const char* mode_map = ".data.mode";
    // It refuses nothing any more, whoever still holds it. Fails where that cannot be written.
    static Result<void> turn_off(const std::string& directory);
    // Turns it off and lets the kernel forget it; the last one takes /sys/fs/bpf/rdmaquota with it.
    static Result<void> remove(const std::string& directory);
    static Result<void> remove_all();
};

}  // namespace rdmaquota
