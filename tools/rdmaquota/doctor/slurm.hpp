#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// Whether Slurm jobs get tenants on this node. Finds nothing where neither Slurm nor a policy for it is there.
void examine_slurm(Findings& findings, const std::string& directory);

// Its part about slurmd, which has this pid.
void examine_slurmd(Findings& findings, int pid);

// Whether a process is root's slurmd in its unit's cgroup, by these files of /proc/PID. Any user can call a process slurmd.
bool is_roots_slurmd(std::string_view comm, std::string_view status, std::string_view cgroup);

struct JobCgroups {
    std::vector<std::uint32_t> jobs;  // by number
    std::string unnumbered;           // one that has another name; empty: none
};
// Those that slurmd has made, where jobs' tenants look for them (cgroup_of in policy/slurm.hpp).
JobCgroups job_cgroups(const std::string& root = "/sys/fs/cgroup");

}  // namespace rdmaquota
