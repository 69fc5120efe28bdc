// The sidecar's two files in a quota directory, JSON both, replaced in one step:
//
//   DIR/sidecar.json   what the policy asks of the sidecar; written with the running policy
//   DIR/changed.json   which limits are at present not the configured ones; written by the sidecar
//
// What programs are held to is in the policy segment alone. changed.json only says how it came about:
// an entry counts while the segment is the one that the file names, and its limit the one that the entry
// names. So it does not matter when the sidecar dies between the two, when a reload replaces the segment, or
// when an administrator sets the limit meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_segment.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {

struct SidecarPolicy {
    std::vector<DynamicRule> rules;
    Sidecar settings;
};
Result<void> write_sidecar_policy(const std::string& directory, const Policy& policy);
// Nothing asked where there is no file.
Result<SidecarPolicy> read_sidecar_policy(const std::string& directory);

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
// Changes in `policy`. None: there will be no file.
Result<void> write_limit_changes(const std::string& directory, const PolicySegment& policy,
                                 const std::vector<ChangedLimit>& changes);
// Those that the running policy bears out; none where there is no file, or it cannot be read.
std::vector<ChangedLimit> limit_changes(const std::string& directory, const PolicySegment& policy);

// The limit that would hold in the cell of `change` without it.
std::uint64_t configured_limit(const PolicySegment& policy, const ChangedLimit& change);
Json changes_json(const PolicySegment& policy, const std::vector<ChangedLimit>& changes);

}  // namespace rdmaquota
