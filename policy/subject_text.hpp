// Who a process is, from the texts of its files in /proc: for the provider, which reads its own, and for the tools,
// which read another's.
//
// Only whole lines count, so a text that was cut short says less and nothing wrong. The functions that return a view
// return a part of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace rdmaquota {

// The path in the cgroup hierarchy, from /proc/PID/cgroup (cgroups(7)): that of the unified hierarchy. Where this is
// "/" and there are others, as on nodes with cgroup v1, the first path other than "/" of rdma, pids and systemd's own.
// Empty where it is not known: nothing usable in the text, or a path outside the reader's cgroup namespace ("/..").
// "/" is all that a process sees in a cgroup namespace of its own. A cgroup that was removed still counts.
std::string_view cgroup_path(std::string_view text) noexcept;

// The number outside for a user or group id inside, from /proc/self/uid_map or gid_map (user_namespaces(7)); none
// where the id is not mapped.
std::optional<std::uint32_t> id_outside(std::string_view map, std::uint32_t id) noexcept;

struct ProcessIds {
    std::optional<uid_t> user;  // effective
    std::optional<gid_t> group;
    std::vector<gid_t> groups;  // supplementary
};

// From the lines Uid, Gid and Groups of /proc/PID/status (proc(5)).
ProcessIds process_ids(std::string_view status);

}  // namespace rdmaquota
