// The node's figures as Prometheus has them; docs/prometheus.md describes each. Never a label for a process, but for
// the names of 16 that are not counted. The first 200 tenants have series of their own, those that people named before
// those of templates; the others are summed up under their template's name, without limits and peaks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/views/snapshot.hpp"
#include "tools/rdmaquotad/dynamic/device_capacity.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"
#include "tools/rdmaquotad/metrics/denial_counts.hpp"
#include "tools/rdmaquotad/metrics/workloads.hpp"

namespace rdmaquota {

struct TenantMetrics {
    std::string label;
    std::vector<DeviceView> devices;
    std::size_t processes = 0;
    std::size_t changed_limits = 0;
    std::vector<RateView> rates = {};
};

// A figure of a tenant on a device; of a resource or a rate.
struct Cell {
    std::string tenant, device, resource;
    auto operator<=>(const Cell&) const = default;
};
using Cells = std::map<Cell, std::uint64_t>;

struct GuardMetrics {
    int mode = 0;  // 0: off, 1: watch, 2: deny
    std::uint64_t exceeded = 0, killed = 0;
    Cells usage, refused;
};

struct WorkloadMetrics {
    std::map<WorkloadCell, std::uint64_t> usage;
    std::size_t left_out = 0;
};

struct MetricsInput {
    std::string version;
    std::uint64_t start_s = 0;  // of the sidecar, since 1970
    std::vector<TenantMetrics> tenants;
    std::map<std::string, DenialCounts::OfTenant> denials;  // by label
    Cells bypassers;            // processes at present
    Cells bypasses;             // how often one was found
    Cells uncounted;            // processes without a slot; `resource` is their unit's or program's name
    Cells created, destroyed;  // objects
    Cells delayed_calls, delayed_ms;  // by rates
    std::map<DeviceCapacity::Place, DeviceCapacity::Figure> devices;
    std::set<std::string> missing_devices;  // that limits name and the node lacks
    std::map<std::string, std::uint64_t> events;  // of the sidecar, by kind, since it started
    std::map<std::string, HcaCounts> backstop;    // what the kernel denied in the default tenant's cgroup; by device
    std::size_t clients = 0;
    GuardMetrics guard;
    std::optional<WorkloadMetrics> workloads;  // where the policy asks for them
};

std::string metrics_text(const MetricsInput& input);

// The label of each of these tenants, given by their keys: a name of its own for at most `most_own`, else that of its
// template, or "other".
inline constexpr std::size_t most_own = 200;
struct NamedTenant {
    std::string key, name;
    std::string from;      // its template; empty: none
    bool passing = false;  // a transient one: never by a name of its own, which Prometheus would keep for long
};
std::vector<std::string> metrics_labels(const std::vector<NamedTenant>& tenants);

}  // namespace rdmaquota
