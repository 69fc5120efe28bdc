// Who this process is, as far as the node's matches look.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "shm/policy/node_policy.hpp"

namespace rdmaquota::provider {

// Ids are those of the node: in a user namespace they are translated by the process's own maps, one level up; an id
// that is not mapped is not known. Where the maps cannot be read (no /proc), ids are taken as they are.
//
// Thread-safe. Throws only std::bad_alloc. Keeps errno. Asks no NSS. Reads files, so call it under NoCancellation.
class OwnSubject {
public:
    // Finds out only what `policy` asks for. `proc` is the process's directory in /proc.
    explicit OwnSubject(const NodePolicy& policy, const std::string& proc = "/proc/self");

    Subject view() const noexcept { return {user_, group_, groups_, cgroup_}; }  // valid as long as this lives

private:
    void read_ids(const std::string& proc);
    void read_cgroup(const std::string& proc);

    std::optional<uid_t> user_;
    std::optional<gid_t> group_;
    std::vector<gid_t> groups_;
    std::string cgroup_;
};

}  // namespace rdmaquota::provider
