// The node's figures as Prometheus text (version 0.0.4 of the format). The labels are tenant, device and resource, never
// a process. The first 200 tenants have series of their own, those that people named before those of templates; the
// others are summed up under their template's name, without limits and peaks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/common/snapshot.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"

namespace rdmaquota {

struct TenantMetrics {
    std::string label;
    std::vector<DeviceView> devices;
    std::size_t processes = 0;
    std::size_t changed_limits = 0;
};

// Of the guard; `usage` by tenant, device and resource.
struct GuardMetrics {
    int mode = 0;  // 0: off, 1: watch, 2: deny
    std::uint64_t refused = 0, exceeded = 0, killed = 0;
    struct Usage {
        std::string tenant, device;
        Resource resource;
        std::uint64_t amount;
    };
    std::vector<Usage> usage;
};

struct MetricsInput {
    std::vector<TenantMetrics> tenants;
    std::map<std::string, std::uint64_t> events;  // of the sidecar, by kind, since it started
    std::uint64_t ledger_events = 0;              // denials and repairs ever recorded
    std::map<std::string, HcaCounts> denied;      // by the kernel, in the default tenant's cgroup; by device
    std::size_t clients = 0;
    GuardMetrics guard;
};

std::string metrics_text(const MetricsInput& input);

// The label of each of these tenants, given by their keys: a name of its own for at most `most_own`, else that of its
// template, or "other".
inline constexpr std::size_t most_own = 200;
struct NamedTenant {
    std::string key, name;
    std::string from;  // its template; empty: none
};
std::vector<std::string> metrics_labels(const std::vector<NamedTenant>& tenants);

}  // namespace rdmaquota
