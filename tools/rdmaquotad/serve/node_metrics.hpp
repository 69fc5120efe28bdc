// Gathers what the metrics say of the node's tenants.
#pragma once

#include <vector>

#include "tools/rdmaquotad/core/node.hpp"
#include "tools/rdmaquotad/serve/metrics.hpp"
#include "tools/rdmaquotad/serve/tenant_views.hpp"

namespace rdmaquota {

std::vector<TenantMetrics> tenant_metrics(Node& node, TenantViews& views);

// Denials and repairs ever recorded, in all ledgers.
std::uint64_t ledger_events(const Node& node);

}  // namespace rdmaquota
