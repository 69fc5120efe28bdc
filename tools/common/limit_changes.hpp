// Which limits of the running policy are not the configured ones at present: DIR/changed.json, written by the sidecar and
// replaced in one step.
//
// Programs are held to the policy segment alone; this file only explains it. An entry counts while the running policy is
// the one that the file names, and the limit the one that the entry names. So nothing goes wrong when the sidecar dies
// between the two, when a reload replaces the policy, or when an administrator sets the limit meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_segment.hpp"
#include "tools/common/json_fwd.hpp"

namespace rdmaquota {

// One cell of the running policy whose limit is not the configured one.
struct ChangedLimit {
    Scope scope{};
    std::string device;
    Resource resource{};
    std::uint64_t configured = unset;  // the cell's value before; `unset`: another row decided
    std::uint64_t limit = 0;           // the cell's value now
    std::uint64_t from = 0;            // its value while the change is being made
    std::string reason;                // not yet safe to print
    std::uint64_t since_s = 0;         // CLOCK_REALTIME
};
// Records changes in `policy`; removes the file when there are none.
Result<void> write_limit_changes(const std::string& directory, const PolicySegment& policy,
                                 const std::vector<ChangedLimit>& changes);
// The recorded changes that hold in `policy`; none when there is no file, or it cannot be read.
std::vector<ChangedLimit> limit_changes(const std::string& directory, const PolicySegment& policy);

// The limit that would hold in the cell of `change` without it.
std::uint64_t configured_limit(const PolicySegment& policy, const ChangedLimit& change);
Json changes_json(const PolicySegment& policy, const std::vector<ChangedLimit>& changes);

}  // namespace rdmaquota
