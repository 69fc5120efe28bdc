#include "tools/rdmaquotad/metrics/metrics.hpp"

#include <functional>
#include <optional>

#include "policy/limit.hpp"
#include "tools/rdmaquotad/metrics/exposition.hpp"

namespace rdmaquota {
namespace {

using Reading = std::function<std::optional<std::uint64_t>(const ResourceView&)>;

std::optional<std::uint64_t> where(bool there, std::uint64_t value) {
    return there ? std::optional(value) : std::nullopt;
}

void views(Exposition& out, const MetricsInput& input, std::string_view name, std::string_view help,
           const Reading& read) {
    out.gauge(name, help);
    for (const auto& tenant : input.tenants)
        for (const auto& device : tenant.devices)
            for (const auto& view : device.resources)
                if (const auto value = read(view))
                    out.sample({{"tenant", tenant.label}, {"device", device.name}, {"resource", info(view.resource).name}},
                               *value);
}

void usage_and_limits(Exposition& out, const MetricsInput& input) {
    views(out, input, "rdmaquota_usage", "What all processes of the tenant use together, objects or bytes.",
          [](const ResourceView& view) { return view.usage; });
    views(out, input, "rdmaquota_configured_limit", "The limit of the policy, or of set; no sample where there is none.",
          [](const ResourceView& view) { return where(view.configured != unlimited, view.configured); });
    views(out, input, "rdmaquota_limit", "The limit in force, by a share or a rule as well; no sample where there is none.",
          [](const ResourceView& view) { return where(view.limit != unlimited, view.limit); });
    views(out, input, "rdmaquota_room", "What the tenant may still create; no sample where nothing limits it.",
          [](const ResourceView& view) { return where(view.room() != unlimited, view.room()); });
    views(out, input, "rdmaquota_soft_limit", "The soft limit; no sample where there is none.",
          [](const ResourceView& view) { return where(view.soft != unlimited, view.soft); });
    views(out, input, "rdmaquota_soft_grace_seconds",
          "What is left of the grace period above the soft limit; no sample for who is not above it.",
          [](const ResourceView& view) { return where(view.above_soft(), view.grace_left_s()); });
    views(out, input, "rdmaquota_guarantee", "What is reserved for the tenant; no sample where nothing is.",
          [](const ResourceView& view) { return where(view.guarantee != 0, view.guarantee); });
    views(out, input, "rdmaquota_debt", "What is used above the tenant's share of what others want; no sample for nothing.",
          [](const ResourceView& view) { return where(view.debt() != 0, view.debt()); });
    views(out, input, "rdmaquota_earmarked",
          "What the tenant asked for and is to have as those with debts free it; no sample for nothing.",
          [](const ResourceView& view) { return where(view.earmarked != 0, view.earmarked); });
    views(out, input, "rdmaquota_peak", "The highest usage ever.", [](const ResourceView& view) { return view.peak; });
}

void of_rates(Exposition& out, const MetricsInput& input) {
    out.gauge("rdmaquota_rate_limit", "What the tenant may create or register a second, in force; no sample where there is no limit.");
    for (const auto& tenant : input.tenants)
        for (const auto& view : tenant.rates)
            if (view.limit != unlimited)
                out.sample({{"tenant", tenant.label}, {"device", view.device}, {"rate", info(view.rate).name}}, view.limit);
    out.counter("rdmaquota_delayed_calls_total", "Calls that a rate delayed.");
    for (const auto& [cell, calls] : input.delayed_calls)
        out.sample({{"tenant", cell.tenant}, {"device", cell.device}, {"rate", cell.resource}}, calls);
    out.counter("rdmaquota_delayed_seconds_total", "By how long a rate delayed calls.");
    for (const auto& [cell, ms] : input.delayed_ms)
        out.sample_seconds({{"tenant", cell.tenant}, {"device", cell.device}, {"rate", cell.resource}}, ms);
}

void of_devices(Exposition& out, const MetricsInput& input) {
    const auto write = [&](const DeviceCapacity::Place& place, std::uint64_t figure) {
        out.sample({{"device", place.first}, {"resource", info(place.second).name}}, figure);
    };
    out.gauge("rdmaquota_device_usage", "What all processes of the node use, in tenants or around them.");
    for (const auto& [place, figure] : input.devices) write(place, figure.in_use);
    out.gauge("rdmaquota_device_capacity", "How many the device can have: what it tells, or what it turned out to have.");
    for (const auto& [place, figure] : input.devices)
        if (figure.capacity != 0) write(place, figure.capacity);
}

void of_tenants(Exposition& out, const MetricsInput& input, std::size_t TenantMetrics::* figure) {
    for (const auto& tenant : input.tenants) out.sample({{"tenant", tenant.label}}, tenant.*figure);
}

void cells(Exposition& out, const Cells& figures) {
    for (const auto& [cell, figure] : figures)
        out.sample({{"tenant", cell.tenant}, {"device", cell.device}, {"resource", cell.resource}}, figure);
}

// The same, of what a limit may deny.
DenialCounts::OfTenant with_zeros(const TenantMetrics& tenant, DenialCounts::OfTenant counts) {
    for (const auto& device : tenant.devices)
        for (const auto& view : device.resources) {
            const auto zero = [&](Reason reason) {
                counts[{EventKind::denied, device.name, std::string(info(view.resource).name), std::string(name(reason))}];
            };
            if (view.limit != unlimited) zero(Reason::configured), zero(view.reason);
            if (view.soft != unlimited) zero(Reason::soft);
        }
    for (const auto& view : tenant.rates)
        if (view.limit != unlimited)
            for (const auto reason : {Reason::configured, view.reason})
                counts[{EventKind::denied, view.device, std::string(info(view.rate).name), std::string(name(reason))}];
    return counts;
}

using AllDenials = std::map<std::string, DenialCounts::OfTenant>;

void denials(Exposition& out, const AllDenials& all, EventKind kind, std::string_view label) {
    for (const auto& [tenant, counts] : all)
        for (const auto& [what, count] : counts)
            if (what.kind == kind)
                out.sample({{"tenant", tenant}, {"device", what.device}, {"resource", what.resource}, {label, what.reason}},
                           count);
}

void denials(Exposition& out, const MetricsInput& input) {
    auto all = input.denials;
    for (const auto& tenant : input.tenants) all[tenant.label] = with_zeros(tenant, all[tenant.label]);
    out.counter("rdmaquota_denied_total", "Creations denied, by the reason of the limit that held.");
    denials(out, all, EventKind::denied, "reason");
    out.counter("rdmaquota_would_deny_total", "Creations that would have been denied outside of audit mode.");
    denials(out, all, EventKind::would_deny, "reason");
    out.counter("rdmaquota_unproved_total", "Creations denied since the ledger was too busy to prove that there was room.");
    denials(out, all, EventKind::unproved, "reason");
    out.counter("rdmaquota_refused_by_device_total", "Creations that kernel, driver or adapter refused with room in the limits.");
    denials(out, all, EventKind::refused_by_device, "error");
}

// Where the tenant uses something, nothing is 0, so that a rise from there is seen.
Cells with_zeros(const MetricsInput& input, Cells figures) {
    for (const auto& tenant : input.tenants)
        for (const auto& device : tenant.devices)
            for (const auto& view : device.resources)
                if (device.name != total_device)
                    figures.try_emplace({tenant.label, device.name, std::string(info(view.resource).name)}, 0);
    return figures;
}

void single(Exposition& out, std::uint64_t value) { out.sample({}, value); }

void around(Exposition& out, const MetricsInput& input) {
    out.gauge("rdmaquota_bypassers", "Processes that have more of it in the kernel at present than they were charged for.");
    cells(out, with_zeros(input, input.bypassers));
    out.counter("rdmaquota_bypasses_total", "How often a process was found to have more of it in the kernel than it was charged for.");
    cells(out, with_zeros(input, input.bypasses));
    out.gauge("rdmaquota_uncounted_processes",
              "Processes that have the device open at present and are not charged at all.");
    for (const auto& [cell, count] : input.uncounted)
        out.sample({{"tenant", cell.tenant}, {"device", cell.device}, {"program", cell.resource}}, count);
    out.counter("rdmaquota_backstop_denials_total", "What the kernel itself denied in the tenant's cgroup (rdma.events).");
    for (const auto& [device, counts] : input.backstop)
        for (const auto& [resource, count] :
             {std::pair(Resource::hca_handle, counts.handle), std::pair(Resource::hca_object, counts.object)})
            out.sample({{"tenant", default_tenant}, {"device", device}, {"resource", info(resource).name}}, count);
}

void of_guard(Exposition& out, const GuardMetrics& guard) {
    out.gauge("rdmaquota_guard_mode", "The guard in the kernel: 0 off, 1 watch, 2 deny.");
    single(out, static_cast<std::uint64_t>(guard.mode));
    if (guard.mode == 0) return;
    out.gauge("rdmaquota_kernel_usage", "What the tenant uses by the kernel's count.");
    cells(out, guard.usage);
    out.counter("rdmaquota_guard_refused_total", "Creations that the guard refused.");
    cells(out, guard.refused);
    out.counter("rdmaquota_guard_exceeded_total", "Creations beyond a limit that could not be refused.");
    single(out, guard.exceeded);
    out.counter("rdmaquota_guard_killed_total", "Processes that were killed for one.");
    single(out, guard.killed);
}

// A label without text is as good as none to Prometheus.
void of_workloads(Exposition& out, const WorkloadMetrics& workloads) {
    out.gauge("rdmaquota_workload_usage", "What the processes of a pod or a job use.");
    for (const auto& [cell, usage] : workloads.usage)
        out.sample({{"tenant", cell.tenant}, {"namespace", cell.name_space}, {"pod", cell.pod}, {"job_id", cell.job},
                    {"device", cell.device}, {"resource", cell.resource}}, usage);
    out.gauge("rdmaquota_workload_usage_left_out", "Usages of pods and jobs without a sample, since there are too many.");
    single(out, workloads.left_out);
}

void of_sidecar(Exposition& out, const MetricsInput& input) {
    out.gauge("rdmaquota_missing_device", "A device that limits name and the node does not have at present; the value is 1.");
    for (const auto& device : input.missing_devices) out.sample({{"device", device}}, 1);
    out.gauge("rdmaquota_build_info", "The sidecar's version; the value is 1.");
    out.sample({{"version", input.version}}, 1);
    out.gauge("process_start_time_seconds", "When the sidecar started, in seconds since 1970.");
    single(out, input.start_s);
    out.counter("rdmaquota_sidecar_events_total", "What the sidecar did or found, by the kind of event.");
    for (const auto& [kind, count] : input.events) out.sample({{"kind", kind}}, count);
    out.gauge("rdmaquota_clients", "Clients of the control socket.");
    single(out, input.clients);
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
    Exposition out;
    usage_and_limits(out, input);
    out.gauge("rdmaquota_processes", "Processes that have a device open.");
    of_tenants(out, input, &TenantMetrics::processes);
    out.gauge("rdmaquota_changed_limits", "Limits that are not as configured at present; shares are not counted.");
    of_tenants(out, input, &TenantMetrics::changed_limits);
    of_rates(out, input);
    of_devices(out, input);
    out.counter("rdmaquota_created_total", "Objects made, by the kernel's count.");
    cells(out, input.created);
    out.counter("rdmaquota_destroyed_total", "Objects destroyed, by the kernel's count.");
    cells(out, input.destroyed);
    denials(out, input);
    around(out, input);
    of_guard(out, input.guard);
    if (input.workloads) of_workloads(out, *input.workloads);
    of_sidecar(out, input);
    return out.text();
}

std::vector<std::string> metrics_labels(const std::vector<NamedTenant>& tenants) {
    std::vector<std::string> labels(tenants.size());
    std::size_t own = 0;
    for (const bool instances : {false, true})
        for (std::size_t i = 0; i < tenants.size(); ++i) {
            const auto& tenant = tenants[i];
            if (tenant.from.empty() == instances) continue;
            if (!tenant.passing && own++ < most_own) labels[i] = tenant.name;
            else labels[i] = instances ? tenant.from : "other";
        }
    return labels;
}

}  // namespace rdmaquota
