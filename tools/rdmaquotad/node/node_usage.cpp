#include "tools/rdmaquotad/node/node_usage.hpp"

#include <algorithm>

namespace rdmaquota {

namespace {

// In audit mode a tenant may use more than its limit.
std::uint64_t most(const Tenant& tenant, const std::string& device, Resource resource) {
    const auto* limits = tenant.limits();
    if (limits == nullptr || limits->mode() != Mode::enforce) return unlimited;
    return limits->configured(Scope::tenant, device, resource);
}

}  // namespace

NodeUsage::NodeUsage(const Node& node, const std::vector<KernelUse>& uses, const Counted& counted) {
    for (const auto& row : resource_table) counted_[index(row.id)] = counted(row.id);
    for (const auto* tenant : node.with_ledger()) add(*tenant);
    for (const auto& use : uses) {
        auto& sums = devices_[use.device];
        sums.partial |= use.partial;
        for (std::size_t r = 0; r < resource_count; ++r) sums.kernel[r] += use.live[r];
    }
}

void NodeUsage::add(const Tenant& tenant) {
    ++tenants_;
    for (const auto& on : tenant.ledger().figures().devices) {
        auto& sums = devices_[on.device];
        for (const auto& row : resource_table) {
            const auto r = index(row.id);
            const auto believed = std::min(on.usage[r], most(tenant, on.device, row.id));
            sums.believed[r] = std::min(sums.believed[r] + believed, max_amount);
        }
    }
}

const NodeUsage::Sums& NodeUsage::sums(const std::string& device) const {
    static constexpr Sums none;
    const auto found = devices_.find(device);
    return found == devices_.end() ? none : found->second;
}

std::uint64_t NodeUsage::of_node(const std::string& device, Resource resource) const {
    const auto& all = sums(device);
    const auto kernel = all.kernel[index(resource)];
    return knows_all(all, resource) ? kernel : std::max(kernel, all.believed[index(resource)]);
}

std::uint64_t NodeUsage::of_node_for(const Tenant& tenant, const std::string& device, Resource resource) const {
    const auto& all = sums(device);
    const auto kernel = all.kernel[index(resource)];
    return knows_all(all, resource) ? kernel : std::max(kernel, tenant.ledger().figures().usage(device, resource));
}

std::uint64_t NodeUsage::of_tenant(const Tenant& tenant, const std::string& device, Resource resource) const {
    const auto own = tenant.ledger().figures().usage(device, resource);
    return tenants_ == 1 ? std::max(own, sums(device).kernel[index(resource)]) : own;
}

}  // namespace rdmaquota
