// Limits that fit what was used and denied so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "policy/scope.hpp"
#include "tools/common/views/snapshot.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

namespace rdmaquota {

struct Proposal {
    std::string tenant, device;  // not yet safe to print
    Scope scope = Scope::tenant;
    Resource resource = Resource::qp;
    std::uint64_t now = unlimited;  // the configured limit
    std::uint64_t limit = 0;        // the proposed one
    std::string why;
};

// From the peaks of tenants, and from events since `since` (UTC, as in an event's "time"):
//   - what was denied by a limit gets twice as much: the reason says how often, which the reader has to judge;
//   - what has no limit gets four times its peak;
//   - what never used more than a sixteenth of its limit gets four times its peak.
// For qp, cq, mr, mr_bytes and hca_handle, and whatever was denied. By tenant and device; limits that the sidecar holds (a
// rule's, a share) are left alone.
std::vector<Proposal> propose(const std::vector<TenantView>& tenants, const EventsByTime& events, const std::string& since);

}  // namespace rdmaquota
