// Gathers what the metrics say of the node.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "tools/rdmaquotad/bypass/bypass_monitor.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/dynamic/device_capacity.hpp"
#include "tools/rdmaquotad/guard/guard.hpp"
#include "tools/rdmaquotad/metrics/label_sums.hpp"
#include "tools/rdmaquotad/metrics/metrics.hpp"
#include "tools/rdmaquotad/serve/tenant_views.hpp"

namespace rdmaquota {

class NodeMetrics {
public:
    struct Sources {
        Node& node;
        TenantViews& views;
        const NodeEvents& events;
        const BypassMonitor& kernel;
        const Guard& guard;
        const DeviceCapacity& capacity;
        std::function<std::size_t()> clients;
    };
    explicit NodeMetrics(Sources sources);

    std::string text();

    // As EventRelay tells of it.
    void add(const Tenant& tenant, const std::string& device, const Event& event, std::uint64_t more);
    void add(const NodeEvent& event);

private:
    using Labels = std::map<std::string, std::string>;  // by key, and by name
    using Place = std::pair<std::string, std::string>;  // device and resource
    void add_tenants(MetricsInput& input);
    void add_up();
    void add_up_delays();
    void forget_gone();
    void add_workloads(MetricsInput& input);
    void add_around(MetricsInput& input) const;
    void add_guard(GuardMetrics& metrics) const;
    static void add_kernel(MetricsInput& input);
    std::set<std::string> missing_devices() const;
    const std::string& label(const std::string& tenant) const;
    static Cells cells(const LabelSums<Place>& sums);

    Sources sources_;
    std::uint64_t start_s_;
    DenialCounts denials_;
    Cells found_;  // bypasses, with names of tenants
    PodNames pods_;
    bool said_left_out_ = false;
    Labels labels_, labels_before_;
    LabelSums<DenialCounts::What> denied_;
    LabelSums<Place> bypasses_, created_, destroyed_, refused_, delayed_calls_, delayed_ms_;
};

}  // namespace rdmaquota
