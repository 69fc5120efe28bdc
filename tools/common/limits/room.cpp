#include "tools/common/limits/room.hpp"

#include <optional>

#include <fmt/core.h>

#include "tools/common/tenants/read_tenants.hpp"

namespace rdmaquota {
namespace {

const ResourceView* find_view(const TenantView& tenant, std::string_view device, Resource resource) {
    for (const auto& on : tenant.devices)
        if (on.name == device)
            for (const auto& view : on.resources)
                if (view.resource == resource) return &view;
    return nullptr;
}

std::uint64_t written_in_force(const LimitsSegment& limits, Scope scope, std::string_view device, Resource resource) {
    const bool in_force = limits.reason(scope, device, resource) == Reason::configured;
    return in_force ? limits.as_written(LimitPart::limit, scope, device, resource) : unset;
}

// The tenant's limit: the soft one when its grace period is over.
std::optional<Bound> tenant_bound(const TenantView& tenant, const LimitsSegment& limits, const std::string& device,
                                  Resource resource) {
    const auto* view = find_view(tenant, device, resource);
    Bound bound{device,
                resource,
                Scope::tenant,
                device == total_device,
                false,
                view == nullptr ? 0 : view->used(),
                limits.limit(Scope::tenant, device, resource),
                written_in_force(limits, Scope::tenant, device, resource)};
    if (view != nullptr && view->above_soft() && view->grace_left_s() == 0 && view->soft < bound.limit) {
        bound.soft = true;
        bound.limit = view->soft;
        bound.written = unset;
    }
    return bound.limit == unlimited ? std::nullopt : std::optional(bound);
}

std::optional<Bound> process_bound(const ProcessView* process, const LimitsSegment& limits, const std::string& device,
                                   Resource resource) {
    const auto limit = limits.limit(Scope::process, device, resource);
    if (limit == unlimited) return std::nullopt;
    const auto used = process == nullptr ? 0 : usage_of(process->devices, device, resource);
    return Bound{device, resource, Scope::process, device == total_device, false, used, limit,
                 written_in_force(limits, Scope::process, device, resource)};
}

const ProcessView* find_process(const TenantView& tenant, int pid) {
    const auto found = std::find_if(tenant.processes.begin(), tenant.processes.end(), [pid](const ProcessView& one) {
        return one.pid == static_cast<std::uint32_t>(pid);
    });
    return found == tenant.processes.end() ? nullptr : &*found;
}

// The devices, with "total"; "*" where there are none.
std::vector<std::string> names_of(const TenantView& tenant, const LimitsSegment& limits) {
    auto names = devices_of(tenant, limits);
    std::erase(names, total_device);
    if (names.empty()) names.emplace_back(any_device);
    names.emplace_back(total_device);
    return names;
}

}  // namespace

std::vector<Bound> bounds(const TenantView& tenant, const LimitsSegment& limits, int pid) {
    const auto* process = find_process(tenant, pid);
    std::vector<Bound> found;
    for (const auto& device : names_of(tenant, limits))
        for (const auto& row : resource_table) {
            if (auto bound = tenant_bound(tenant, limits, device, row.id)) found.push_back(std::move(*bound));
            if (auto bound = process_bound(process, limits, device, row.id)) found.push_back(std::move(*bound));
        }
    return found;
}

std::vector<Bound> tightest(const std::vector<Bound>& bounds, const TenantView& tenant, const LimitsSegment& limits) {
    std::vector<Bound> found;
    for (const auto& device : names_of(tenant, limits)) {
        if (device == total_device) continue;
        for (const auto& row : resource_table) {
            const Bound* least = nullptr;
            for (const auto& bound : bounds) {
                const bool holds = bound.device == device || (bound.total && !is_port(device));
                if (bound.resource == row.id && holds && (least == nullptr || bound.room() < least->room()))
                    least = &bound;
            }
            if (least == nullptr) continue;
            found.push_back(*least);
            found.back().device = device;
        }
    }
    return found;
}

std::vector<RateBound> rate_bounds(const TenantView& tenant, const LimitsSegment& limits) {
    std::vector<RateBound> found;
    for (const auto& device : names_of(tenant, limits)) {
        if (is_port(device)) continue;
        for (const auto& row : rate_table)
            for (const auto scope : {Scope::tenant, Scope::process}) {
                const auto limit = limits.limit(scope, device, row.id);
                const auto burst = scope == Scope::tenant ? limits.soft(device, row.id) : unlimited;
                if (limit != unlimited) found.push_back({device, row.id, scope, limit, burst == unlimited ? limit : burst});
            }
    }
    return found;
}

std::string whose(const Bound& bound) {
    return fmt::format("{}{}{}", bound.scope == Scope::process ? "this process" : "the tenant",
                       bound.total ? ", all devices" : "", bound.soft ? ", soft" : "");
}

}  // namespace rdmaquota
