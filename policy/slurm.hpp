// Slurm jobs and their tenants, "slurm/ACCOUNT/job-ID": what limits a job has, and what its user may ask for within
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

struct SlurmJob {
    std::uint32_t id = 0;
    std::uint32_t uid = 0;
    std::string account, partition, qos;  // empty: Slurm has none, or did not tell
};

// "slurm/atlas/job-4711". What a tenant's name cannot have is '_' in it; without an account it is
// "slurm/none/job-4711".
std::string tenant_of(const SlurmJob& job);
// Whether it is a tenant of the job with this number, of whatever account.
bool is_tenant_of(std::string_view tenant, std::uint32_t job);

// Where slurmd puts the job's processes, as a pattern that fits also several slurmd on a node. With cgroup version 1 the
// hierarchies that Slurm uses are others than those that a process is known by (cgroup_path).
std::string cgroup_of(const SlurmJob& job);

// What the policy gives to the job.
ScopeLimits limits_of(const SlurmPolicy& policy, const SlurmJob& job);

// "qp=100,mr_bytes=10GiB,mlx5_0:cq=5", what --rdma takes. The error says which part is wrong. Each device takes a place of a
// tenant's limits, of which there are 66 (shm/policy/limits_image.hpp).
inline constexpr std::size_t most_requested_devices = 16;
struct DeviceSetting {
    std::string device;
    Setting setting;
};
Result<std::vector<DeviceSetting>> parse_job_request(std::string_view text);

// Lowers `limits`, which the policy gives, to what was asked for, and never raises one above that. An amount that is asked for where
// the policy gives a percentage, or the reverse, has no effect: which is less depends on the device. Of a device that is named
// after "*", what is asked for it counts. Returns a sentence for each part that is not as it was asked.
std::vector<std::string> apply_job_request(const std::vector<DeviceSetting>& request, ScopeLimits& limits);

}  // namespace rdmaquota
