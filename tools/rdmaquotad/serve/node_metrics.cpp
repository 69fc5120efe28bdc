#include "tools/rdmaquotad/serve/node_metrics.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rdmaquota {
namespace {

// Tenants that have limits, apart from templates.
std::vector<Tenant*> shown(Node& node) {
    std::vector<Tenant*> tenants;
    for (auto& [key, tenant] : node.tenants())
        if (tenant.limits() != nullptr && !is_template(key)) tenants.push_back(&tenant);
    return tenants;
}

std::string template_of(const Node& node, const std::string& key) {
    if (node.is_own() || node.decompiled().find(key) != nullptr) return {};
    for (const auto& tenant : node.decompiled().tenants)
        if (is_instance_of(key, tenant.name)) return tenant.name;
    return {};
}

void add(const Figures& figures, std::vector<DeviceView>& devices) {
    for (const auto& on : figures.devices) {
        auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const DeviceView& view) { return view.name == on.device; });
        if (device == devices.end()) device = devices.insert(devices.end(), DeviceView{on.device, {}});
        for (const auto& row : resource_table) {
            const auto used = on.usage[index(row.id)];
            const auto same = std::find_if(device->resources.begin(), device->resources.end(),
                                           [&](const ResourceView& view) { return view.resource == row.id; });
            if (same != device->resources.end()) same->usage += used;
            else if (used != 0) device->resources.push_back({row.id, used, unlimited, {}});
        }
    }
}

void add_to_sum(Tenant& tenant, TenantMetrics& sum) {
    add(tenant.ledger().figures(), sum.devices);
    sum.processes += tenant.ledger().figures().processes;
    sum.changed_limits += tenant.held().size();
}

}  // namespace

std::vector<TenantMetrics> tenant_metrics(Node& node, TenantViews& views) {
    const auto tenants = shown(node);
    std::vector<NamedTenant> named;
    for (const auto* tenant : tenants)
        named.push_back({tenant->key(), tenant->name(), template_of(node, tenant->key())});
    const auto labels = metrics_labels(named);
    std::vector<Tenant*> own;
    std::map<std::string, TenantMetrics> sums;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        if (labels[i] == named[i].name) own.push_back(tenants[i]);
        else if (tenants[i]->has_ledger()) add_to_sum(*tenants[i], sums[labels[i]]);
    }
    std::vector<TenantMetrics> metrics;
    const auto of_own = views.of(own);
    for (std::size_t i = 0; i < own.size(); ++i)
        metrics.push_back({own[i]->name(), of_own[i]->devices, own[i]->ledger().figures().processes,
                           own[i]->held().size()});
    for (auto& [label, sum] : sums) {
        sum.label = label;
        metrics.push_back(std::move(sum));
    }
    return metrics;
}

std::uint64_t ledger_events(const Node& node) {
    std::uint64_t sum = 0;
    for (const auto* tenant : node.with_ledger()) {
        const auto recorded = tenant->ledger().events();
        sum += recorded.denials + recorded.repairs;
    }
    return sum;
}

}  // namespace rdmaquota
