// The tenants of Slurm jobs on this node. They are transient tenants (transient.hpp), made from what [slurm] of the
// policy in force says of a job.
//
//   DIR/slurm/policy.toml   [slurm] of the policy in force; not there without one
//   DIR/slurm/events        why jobs have no tenant, or not the limits that were asked for; JSON, one event a line
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "policy/slurm.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

inline std::string slurm_directory(const std::string& directory) { return directory + "/slurm"; }

// For `reload`.
Result<void> put_slurm(const std::string& directory, const std::optional<SlurmPolicy>& policy);
// None where the policy has no [slurm].
Result<std::optional<SlurmPolicy>> running_slurm(const std::string& directory);

// Makes the job's tenant, in the place of one that an earlier job with this number left. After an error there is none, as
// far as it could be removed again. For root.
Result<void> begin_job(const std::string& directory, const SlurmJob& job, ScopeLimits limits);

// Removes the tenants of the job; there may be none, and no policy in force. For root.
Result<void> end_job(const std::string& directory, std::uint32_t job);

// Best effort. The oldest go when there are too many.
void record_job_event(const std::string& directory, const SlurmJob& job, const std::string& text);
std::vector<Json> job_events(const std::string& directory);

// How far a reader has come.
struct JobEventCursor {
    ino_t file = 0;
    off_t offset = 0;
};
// Those since `next`, which it moves on. Begins again where the file was replaced or shortened.
std::vector<Json> job_events(const std::string& directory, JobEventCursor& next);

}  // namespace rdmaquota
