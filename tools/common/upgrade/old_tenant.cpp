#include "tools/common/upgrade/old_tenant.hpp"

#include <unistd.h>

#include <algorithm>

#include "tools/common/upgrade/old_ledger.hpp"
#include "tools/common/upgrade/old_policy.hpp"

namespace rdmaquota {
namespace {

using namespace upgrade;

ResourceView view_of(const OldPolicyImage& policy, Scope scope, const std::string& device, Resource resource,
                     std::uint64_t usage) {
    const auto limit = old_limit(policy, scope, device, resource);
    return {resource, usage, limit, {}, limit, Reason::configured};
}

void keep(std::vector<DeviceView>& views, DeviceView view) {
    if (!view.resources.empty()) views.push_back(std::move(view));
}

// Sums are shown where they are limited.
void add_total(std::vector<DeviceView>& views, const OldPolicyImage& policy, Scope scope, const UsageByDevice& usage) {
    const std::string name(total_device);
    DeviceView total{name, {}};
    for (const auto& row : resource_table)
        if (const auto view = view_of(policy, scope, name, row.id, total_in(usage, row.id));
            view.limit != unlimited && (scope == Scope::tenant || view.usage != 0))
            total.resources.push_back(view);
    keep(views, std::move(total));
}

ProcessView process_of(const OldPolicyImage& policy, const OldOwner& owner) {
    ProcessView process{owner.pid, owner.uid, owner.comm, {}, {}};
    for (const auto& [name, amounts] : owner.usage) {
        DeviceView device{name, {}};
        for (const auto& row : resource_table)
            if (const auto amount = amounts[index(row.id)]; amount != 0)
                device.resources.push_back(view_of(policy, Scope::process, name, row.id, amount));
        keep(process.devices, std::move(device));
    }
    add_total(process.devices, policy, Scope::process, owner.usage);
    return process;
}

std::vector<DeviceView> devices_of(const OldPolicyImage& policy, const UsageByDevice& usage,
                                   const UsageByDevice& peaks) {
    std::vector<DeviceView> views;
    for (const auto& [name, amounts] : peaks) {
        DeviceView device{name, {}};
        for (const auto& row : resource_table) {
            auto view = view_of(policy, Scope::tenant, name, row.id, amount_in(usage, name, row.id));
            view.peak = amounts[index(row.id)];
            if (view.usage != 0 || view.limit != unlimited || *view.peak != 0) device.resources.push_back(view);
        }
        keep(views, std::move(device));
    }
    add_total(views, policy, Scope::tenant, usage);
    return views;
}

}  // namespace

std::optional<TenantView> read_old_tenant(const std::string& directory) {
    if (::access(old_policy_path(directory).c_str(), F_OK) != 0) return std::nullopt;
    const auto policy = read_old_policy(directory);
    const auto ledger = OldLedger::open(directory);
    if (!policy || !ledger) return std::nullopt;
    const auto owners = ledger->owners();
    if (owners.empty()) return std::nullopt;
    TenantView tenant{std::string(old_tenant_name), old_mode(*policy), default_weight, {}, {}, {}, false};
    UsageByDevice usage;
    for (const auto& owner : owners) {
        add_to(usage, owner.usage);
        tenant.processes.push_back(process_of(*policy, owner));
    }
    tenant.devices = devices_of(*policy, usage, ledger->peaks());
    std::sort(tenant.processes.begin(), tenant.processes.end(),
              [](const ProcessView& a, const ProcessView& b) { return a.pid < b.pid; });
    return tenant;
}

}  // namespace rdmaquota
