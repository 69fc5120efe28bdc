// The node's figures as Prometheus text (version 0.0.4 of the format). The labels are tenant, device and resource, never
// a process, so there are no more series than the ledger has cells.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/common/snapshot.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"

namespace rdmaquota {

struct MetricsInput {
    std::vector<TenantView> tenants;
    std::map<std::string, std::uint64_t> events;  // of the sidecar, by kind, since it started
    std::uint64_t ledger_events = 0;              // denials and repairs ever recorded
    std::map<std::string, HcaCounts> denied;      // by the kernel, in the default tenant's cgroup; by device
    std::size_t clients = 0;
    std::size_t changed_limits = 0;
};

std::string metrics_text(const MetricsInput& input);

}  // namespace rdmaquota
