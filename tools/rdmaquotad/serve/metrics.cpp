#include "tools/rdmaquotad/serve/metrics.hpp"

#include <functional>
#include <optional>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

// Tenants can write any device name into the ledger.
std::string label(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

void head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
    text += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

using Reading = std::function<std::optional<std::uint64_t>(const ResourceView&)>;

void cells(std::string& text, const MetricsInput& input, std::string_view name, std::string_view help,
           const Reading& read) {
    head(text, name, "gauge", help);
    for (const auto& tenant : input.tenants)
        for (const auto& device : tenant.devices)
            for (const auto& view : device.resources)
                if (const auto value = read(view))
                    text += fmt::format("{}{{tenant=\"{}\",device=\"{}\",resource=\"{}\"}} {}\n", name,
                                        label(tenant.label), label(device.name), info(view.resource).name, *value);
}

void of_tenants(std::string& text, const MetricsInput& input, std::string_view name, std::string_view help,
                std::size_t TenantMetrics::* figure) {
    head(text, name, "gauge", help);
    for (const auto& tenant : input.tenants)
        text += fmt::format("{}{{tenant=\"{}\"}} {}\n", name, label(tenant.label), tenant.*figure);
}

void denials(std::string& text, const MetricsInput& input) {
    head(text, "rdmaquota_backstop_denials_total", "counter",
         "What the kernel itself denied in the tenant's cgroup (rdma.events).");
    for (const auto& [device, counts] : input.denied)
        for (const auto& [resource, count] :
             {std::pair(Resource::hca_handle, counts.handle), std::pair(Resource::hca_object, counts.object)})
            text += fmt::format("rdmaquota_backstop_denials_total{{tenant=\"{}\",device=\"{}\",resource=\"{}\"}} {}\n",
                                default_tenant, label(device), info(resource).name, count);
}

void single(std::string& text, std::string_view name, std::string_view type, std::string_view help,
            std::uint64_t value) {
    head(text, name, type, help);
    text += fmt::format("{} {}\n", name, value);
}

void of_guard(std::string& text, const GuardMetrics& guard) {
    single(text, "rdmaquota_guard_mode", "gauge", "The guard in the kernel: 0 off, 1 watch, 2 deny.",
           static_cast<std::uint64_t>(guard.mode));
    if (guard.mode == 0) return;
    head(text, "rdmaquota_kernel_usage", "gauge", "What the tenant uses by the kernel's count.");
    for (const auto& usage : guard.usage)
        text += fmt::format("rdmaquota_kernel_usage{{tenant=\"{}\",device=\"{}\",resource=\"{}\"}} {}\n", label(usage.tenant),
                            label(usage.device), info(usage.resource).name, usage.amount);
    single(text, "rdmaquota_guard_refused_total", "counter", "Creations that the guard refused.", guard.refused);
    single(text, "rdmaquota_guard_exceeded_total", "counter", "Creations beyond a limit that could not be refused.",
           guard.exceeded);
    single(text, "rdmaquota_guard_killed_total", "counter", "Processes that were killed for one.", guard.killed);
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
    std::string text;
    cells(text, input, "rdmaquota_usage", "What all processes of the tenant use together.",
          [](const ResourceView& view) { return view.usage; });
    cells(text, input, "rdmaquota_limit", "The limit that holds at present; no sample where there is none.",
          [](const ResourceView& view) { return view.limit == unlimited ? std::nullopt : std::optional(view.limit); });
    cells(text, input, "rdmaquota_soft_limit", "The soft limit; no sample where there is none.",
          [](const ResourceView& view) { return view.soft == unlimited ? std::nullopt : std::optional(view.soft); });
    cells(text, input, "rdmaquota_guarantee", "What is reserved for the tenant; no sample where nothing is.",
          [](const ResourceView& view) { return view.guarantee == 0 ? std::nullopt : std::optional(view.guarantee); });
    cells(text, input, "rdmaquota_debt", "What is used above the tenant's share of what others want; no sample for nothing.",
          [](const ResourceView& view) { return view.debt() == 0 ? std::nullopt : std::optional(view.debt()); });
    cells(text, input, "rdmaquota_peak", "The highest usage ever.", [](const ResourceView& view) { return view.peak; });
    of_tenants(text, input, "rdmaquota_processes", "Processes that have a device open.", &TenantMetrics::processes);
    of_tenants(text, input, "rdmaquota_changed_limits", "Limits that are at present not the configured ones.",
               &TenantMetrics::changed_limits);
    single(text, "rdmaquota_ledger_events_total", "counter", "Denials and repairs recorded in the ledgers.",
           input.ledger_events);
    head(text, "rdmaquota_sidecar_events_total", "counter", "What the sidecar did or found since it started.");
    for (const auto& [kind, count] : input.events)
        text += fmt::format("rdmaquota_sidecar_events_total{{kind=\"{}\"}} {}\n", label(kind), count);
    denials(text, input);
    of_guard(text, input.guard);
    single(text, "rdmaquota_clients", "gauge", "Clients of the control socket.", input.clients);
    return text;
}

std::vector<std::string> metrics_labels(const std::vector<NamedTenant>& tenants) {
    std::vector<std::string> labels(tenants.size());
    std::size_t own = 0;
    for (const bool instances : {false, true})
        for (std::size_t i = 0; i < tenants.size(); ++i) {
            const auto& tenant = tenants[i];
            if (tenant.from.empty() == instances) continue;
            if (own++ < most_own) labels[i] = tenant.name;
            else labels[i] = instances ? tenant.from : "other";
        }
    return labels;
}

}  // namespace rdmaquota
