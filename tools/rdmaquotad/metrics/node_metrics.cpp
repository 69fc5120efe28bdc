#include "tools/rdmaquotad/metrics/node_metrics.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "tools/common/config.hpp"
#include "tools/common/json.hpp"

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

std::string resource_name(std::size_t r) { return std::string(resource_table[r].name); }

}  // namespace

NodeMetrics::NodeMetrics(Sources sources)
    : sources_(std::move(sources)), start_s_(static_cast<std::uint64_t>(std::time(nullptr))) {}

void NodeMetrics::add(const Tenant& tenant, const std::string& device, const Event& event, std::uint64_t more) {
    denials_.add(tenant.key(), device, event, more);
}

void NodeMetrics::add(const NodeEvent& event) {
    if (event.kind != "bypass") return;
    for (const auto& [resource, amounts] : event.fields.at("resources").items())
        ++bypasses_[{event.fields.value("tenant", ""), event.fields.value("device", ""), resource}];
}

// Of one that is gone, and of those who ended before it was known: "unknown". The node counts without having limits, too.
const std::string& NodeMetrics::label(const std::string& tenant) const {
    static const std::string unknown = "unknown", node(node_tenant);
    const auto found = labels_.find(tenant);
    if (found != labels_.end()) return found->second;
    return tenant == node ? node : unknown;
}

void NodeMetrics::add_tenants(MetricsInput& input) {
    const auto tenants = shown(sources_.node);
    std::vector<NamedTenant> named;
    for (const auto* tenant : tenants)
        named.push_back({tenant->key(), tenant->name(), template_of(sources_.node, tenant->key())});
    const auto labels = metrics_labels(named);
    labels_.clear();
    std::vector<Tenant*> own;
    std::map<std::string, TenantMetrics> sums;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        labels_[named[i].key] = labels_[named[i].name] = labels[i];
        if (labels[i] == named[i].name) own.push_back(tenants[i]);
        else if (tenants[i]->has_ledger()) add_to_sum(*tenants[i], sums[labels[i]]);
    }
    const auto of_own = sources_.views.of(own);
    for (std::size_t i = 0; i < own.size(); ++i)
        input.tenants.push_back({own[i]->name(), of_own[i]->devices, own[i]->ledger().figures().processes,
                                 own[i]->held().size()});
    for (auto& [label, sum] : sums) {
        sum.label = label;
        input.tenants.push_back(std::move(sum));
    }
}

void NodeMetrics::add_denials(MetricsInput& input) const {
    for (const auto& [tenant, counts] : denials_.all())
        for (const auto& [what, count] : counts) input.denials[label(tenant)][what] += count;
}

void NodeMetrics::add_around(MetricsInput& input) const {
    for (const auto& bypass : sources_.kernel.bypasses())
        for (const auto& amount : bypass.amounts)
            ++input.bypassers[{label(bypass.tenant), bypass.device, std::string(info(amount.resource).name)}];
    for (const auto& [cell, count] : bypasses_) input.bypasses[{label(cell.tenant), cell.device, cell.resource}] += count;
    for (const auto& [place, counts] : sources_.kernel.churn())
        for (std::size_t r = 0; r < resource_count; ++r) {
            if (counts.created[r] == 0) continue;
            const Cell cell{label(place.first), place.second, resource_name(r)};
            input.created[cell] += counts.created[r];
            input.destroyed[cell] += counts.destroyed[r];
        }
}

void NodeMetrics::add_guard(GuardMetrics& metrics) const {
    const auto& counts = sources_.guard.counts();
    metrics.mode = static_cast<int>(sources_.guard.mode());
    metrics.exceeded = counts.exceeded;
    metrics.killed = counts.killed;
    for (const auto& usage : sources_.guard.usage()) {
        const Cell cell{label(usage.tenant), usage.device, std::string(info(usage.resource).name)};
        metrics.usage[cell] += usage.amount;
        metrics.refused[cell] += usage.refused;
    }
}

std::string NodeMetrics::text() {
    MetricsInput input;
    input.version = config::version;
    input.start_s = start_s_;
    add_tenants(input);
    denials_.keep([this](const std::string& key) { return sources_.node.find(key) != nullptr; });
    add_denials(input);
    add_around(input);
    add_guard(input.guard);
    input.devices = sources_.capacity.all();
    input.events = sources_.events.counts();
    input.backstop = sources_.kernel.denied();
    input.clients = sources_.clients();
    return metrics_text(input);
}

}  // namespace rdmaquota
