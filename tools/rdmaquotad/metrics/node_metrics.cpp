#include "tools/rdmaquotad/metrics/node_metrics.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "policy/pattern.hpp"
#include "policy/printable.hpp"
#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

// Tenants that have limits, apart from templates.
std::vector<Tenant*> shown(Node& node) {
    std::vector<Tenant*> tenants;
    for (auto& [key, tenant] : node.tenants())
        if (tenant.limits() != nullptr && !is_template(key)) tenants.push_back(&tenant);
    return tenants;
}

NamedTenant named(const Node& node, const Tenant& tenant) {
    const auto& key = tenant.key();
    NamedTenant named{key, tenant.name(), {}};
    if (node.is_own()) return named;
    if (const auto* known = node.decompiled().find(key)) {
        named.passing = known->transient;
        if (const auto end = named.name.rfind('/'); named.passing)
            named.from = end == named.name.npos ? "*" : named.name.substr(0, end) + "/*";
        return named;
    }
    for (const auto& other : node.decompiled().tenants)
        if (is_instance_of(key, other.name)) named.from = other.name;
    return named;
}

void keep_known(std::vector<DeviceView>& views, const std::vector<std::string>& devices) {
    std::erase_if(views, [&](const DeviceView& view) { return !is_device_of(devices, view.name); });
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
            if (same != device->resources.end())
                same->usage += used;
            else if (used != 0)
                device->resources.push_back({row.id, used, unlimited, {}});
        }
    }
}

void add_to_sum(Tenant& tenant, TenantMetrics& sum) {
    add(tenant.ledger().figures(), sum.devices);
    sum.processes += tenant.ledger().figures().processes;
    sum.changed_limits += count_changed(tenant.held());
}

constexpr std::size_t most_programs = 16;  // a user may call programs as it likes

std::string program_name(const Difference& bypass) {
    const auto unit = unit_of(bypass.cgroup);
    return printable(unit.empty() ? std::string_view(bypass.comm) : unit);
}

std::string resource_name(std::size_t r) { return std::string(resource_table[r].name); }

}  // namespace

NodeMetrics::NodeMetrics(Sources sources)
    : sources_(std::move(sources)), start_s_(static_cast<std::uint64_t>(std::time(nullptr))) {}

void NodeMetrics::add(const Tenant& tenant, const std::string& device, const Event& event, std::uint64_t more) {
    if (more == 0) return;
    denials_.add(tenant.key(), is_device_of(machine_devices(), device) ? device : "other", event, more);
}

void NodeMetrics::add(const NodeEvent& event) {
    if (event.kind != "bypass") return;
    for (const auto& [resource, amounts] : event.fields.at("resources").items())
        ++found_[{event.fields.value("tenant", ""), event.fields.value("device", ""), resource}];
}

// The last one of a tenant that is gone, "unknown" of those who ended before theirs was known. The node counts without
// having limits, too.
const std::string& NodeMetrics::label(const std::string& tenant) const {
    static const std::string unknown = "unknown", node(node_tenant);
    for (const auto* labels : {&labels_, &labels_before_})
        if (const auto found = labels->find(tenant); found != labels->end()) return found->second;
    return tenant == node ? node : unknown;
}

void NodeMetrics::add_tenants(MetricsInput& input) {
    const auto tenants = shown(sources_.node);
    std::vector<NamedTenant> names;
    for (const auto* tenant : tenants) names.push_back(named(sources_.node, *tenant));
    const auto labels = metrics_labels(names);
    labels_before_ = std::exchange(labels_, {});
    std::vector<Tenant*> own;
    std::map<std::string, TenantMetrics> sums;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        labels_[names[i].key] = labels_[names[i].name] = labels[i];
        if (labels[i] == names[i].name)
            own.push_back(tenants[i]);
        else if (tenants[i]->has_ledger())
            add_to_sum(*tenants[i], sums[labels[i]]);
    }
    const auto of_own = sources_.views.of(own);
    for (std::size_t i = 0; i < own.size(); ++i)
        input.tenants.push_back(
            {own[i]->name(), of_own[i]->devices, own[i]->ledger().figures().processes, own[i]->held().size(), of_own[i]->rates});
    for (auto& [label, sum] : sums) {
        sum.label = label;
        input.tenants.push_back(std::move(sum));
    }
    const auto devices = machine_devices();
    for (auto& tenant : input.tenants) {
        keep_known(tenant.devices, devices);
        std::erase_if(tenant.rates, [&](const RateView& view) { return !is_device_of(devices, view.device); });
    }
}

// Covers tenants without series of their own, too.
void NodeMetrics::add_workloads(MetricsInput& input) {
    const auto& asked = sources_.node.decompiled().sidecar.metrics;
    if (!asked.pods && !asked.jobs) return;
    const auto tenants = shown(sources_.node);
    const auto views = sources_.views.of(tenants);
    const auto devices = machine_devices();
    Workloads workloads(asked, pods_);
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        if (!tenants[i]->has_ledger()) continue;
        auto view = *views[i];
        for (auto& process : view.processes) keep_known(process.devices, devices);
        workloads.add(label(tenants[i]->key()), view);
    }
    if (workloads.left_out() != 0 && !said_left_out_)
        log(Priority::warning, fmt::format("metrics: more than {} usages of pods and jobs; the others are left out", Workloads::most));
    said_left_out_ = workloads.left_out() != 0;
    input.workloads = {workloads.usage(), workloads.left_out()};
}

void NodeMetrics::add_up() {
    for (const auto& [tenant, counts] : denials_.all())
        for (const auto& [what, count] : counts) denied_.add(tenant, label(tenant), what, count);
    for (const auto& [cell, count] : found_)
        bypasses_.add(cell.tenant, label(cell.tenant), {cell.device, cell.resource}, count);
    for (const auto& [place, counts] : sources_.kernel.churn())
        for (std::size_t r = 0; r < resource_count; ++r) {
            if (counts.created[r] == 0) continue;
            const Place what{place.second, resource_name(r)};
            created_.add(place.first, label(place.first), what, counts.created[r]);
            destroyed_.add(place.first, label(place.first), what, counts.destroyed[r]);
        }
    for (const auto& usage : sources_.guard.usage())
        refused_.add(usage.tenant, label(usage.tenant), {usage.device, std::string(info(usage.resource).name)},
                     usage.refused);
}

// A tenant with a rate has 0 before its first delay, so that Prometheus sees a rise. Inner tenants have no counters: theirs would
// fall when a tenant below goes.
void NodeMetrics::add_up_delays() {
    const auto devices = machine_devices();
    for (const auto* tenant : shown(sources_.node))
        for (const auto& on : tenant->ledger().figures().devices) {
            if (!is_device_of(devices, on.device)) continue;
            for (const auto& row : rate_table) {
                const auto& delays = on.delays[rate_index(row.id)];
                if (delays.calls == 0 && tenant->limits()->limit(Scope::tenant, on.device, row.id) == unlimited) continue;
                const Place what{on.device, std::string(row.name)};
                delayed_calls_.add(tenant->key(), label(tenant->key()), what, delays.calls);
                delayed_ms_.add(tenant->key(), label(tenant->key()), what, delays.ns / 1'000'000);
            }
        }
}

// What is counted for tenants that are gone is in the sums of their labels by now.
void NodeMetrics::forget_gone() {
    denials_.keep([this](const std::string& key) { return sources_.node.find(key) != nullptr; });
    std::erase_if(found_, [this](const auto& entry) { return !labels_.contains(entry.first.tenant); });
    std::set<std::string> used{"unknown", std::string(node_tenant)};
    for (const auto& [tenant, label] : labels_) used.insert(label);
    const auto in_use = [&](const std::string& label) { return used.contains(label); };
    denied_.end_round(in_use);
    for (auto* sums : {&bypasses_, &created_, &destroyed_, &refused_, &delayed_calls_, &delayed_ms_}) sums->end_round(in_use);
}

Cells NodeMetrics::cells(const LabelSums<Place>& sums) {
    Cells cells;
    for (const auto& [label, counts] : sums.all())
        for (const auto& [place, count] : counts) cells[{label, place.first, place.second}] = count;
    return cells;
}

void NodeMetrics::add_around(MetricsInput& input) const {
    std::set<std::string> programs;
    for (const auto& bypass : sources_.kernel.bypasses()) {
        for (const auto& amount : bypass.amounts)
            ++input.bypassers[{label(bypass.tenant), bypass.device, std::string(info(amount.resource).name)}];
        if (bypass.has_slot) continue;
        auto program = program_name(bypass);
        if (programs.size() >= most_programs && !programs.contains(program)) program = "other";
        programs.insert(program);
        ++input.uncounted[{label(bypass.tenant), bypass.device, program}];
    }
    input.bypasses = cells(bypasses_);
    input.created = cells(created_);
    input.destroyed = cells(destroyed_);
    input.delayed_calls = cells(delayed_calls_);
    input.delayed_ms = cells(delayed_ms_);
}

void NodeMetrics::add_guard(GuardMetrics& metrics) const {
    const auto& counts = sources_.guard.counts();
    metrics.mode = static_cast<int>(sources_.guard.mode());
    metrics.exceeded = counts.exceeded;
    metrics.killed = counts.killed;
    for (const auto& usage : sources_.guard.usage())
        if (!is_rate(usage.resource)) metrics.usage[{label(usage.tenant), usage.device, std::string(info(usage.resource).name)}] += usage.amount;
    metrics.refused = cells(refused_);
}

// Where the guard alone holds programs, its count bounds what may still be created.
void NodeMetrics::add_kernel(MetricsInput& input) {
    const auto& usage = input.guard.usage;
    for (auto& tenant : input.tenants)
        for (auto& device : tenant.devices)
            for (auto& view : device.resources)
                if (const auto found = usage.find({tenant.label, device.name, std::string(info(view.resource).name)}); found != usage.end())
                    view.kernel = found->second;
}

// Empty on a node without any device, whose driver is still to come.
std::set<std::string> NodeMetrics::missing_devices() const {
    constexpr std::size_t most = 64;
    const auto here = machine_devices();
    std::set<std::string> missing;
    if (here.empty()) return missing;
    const auto is_named = [](const OriginRow& origins) {
        return std::any_of(std::begin(origins.of), std::end(origins.of), [](const Origin& one) { return load(one.configured) != unset; });
    };
    for (const auto& [key, tenant] : sources_.node.tenants())
        for (const auto scope : {Scope::process, Scope::tenant})
            if (tenant.limits() != nullptr)
                tenant.limits()->for_each_row(scope, [&](const std::string& name, const LimitsRow&, const OriginRow& origins) {
                    const std::string device(without_port(name));
                    if (device != any_device && device != total_device && missing.size() < most && is_named(origins) &&
                        !std::binary_search(here.begin(), here.end(), device))
                        missing.insert(device);
                });
    return missing;
}

std::string NodeMetrics::text() {
    MetricsInput input;
    input.version = config::version;
    input.start_s = start_s_;
    add_tenants(input);
    add_up();
    add_up_delays();
    forget_gone();
    input.denials = denied_.all();
    add_around(input);
    add_workloads(input);
    add_guard(input.guard);
    add_kernel(input);
    input.devices = sources_.capacity.all();
    input.missing_devices = missing_devices();
    input.events = sources_.events.counts();
    input.backstop = sources_.kernel.denied();
    input.clients = sources_.clients();
    return metrics_text(input);
}

}  // namespace rdmaquota
