#include "tools/rdmaquotad/core/node_usage.hpp"

#include <algorithm>

namespace rdmaquota {

NodeUsage::NodeUsage(const Node& node, const std::vector<KernelUse>& uses) {
    for (const auto* tenant : node.with_ledger())
        for (const auto& on : tenant->ledger().figures().devices) {
            auto& sums = devices_[on.device];
            for (std::size_t r = 0; r < resource_count; ++r)
                sums.ledgers[r] = std::min(sums.ledgers[r] + on.usage[r], max_amount);
        }
    for (const auto& use : uses) {
        auto& sums = devices_[use.device];
        for (std::size_t r = 0; r < resource_count; ++r) sums.kernel[r] += use.live[r];
    }
}

const NodeUsage::Sums& NodeUsage::sums(const std::string& device) const {
    static constexpr Sums none;
    const auto found = devices_.find(device);
    return found == devices_.end() ? none : found->second;
}

std::uint64_t NodeUsage::of_node(const std::string& device, Resource resource) const {
    const auto& all = sums(device);
    return std::max(all.kernel[index(resource)], all.ledgers[index(resource)]);
}

std::uint64_t NodeUsage::of_tenant(const Tenant& tenant, const std::string& device, Resource resource) const {
    const auto& all = sums(device);
    const auto own = tenant.ledger().figures().usage(device, resource);
    const auto others = all.ledgers[index(resource)] - std::min(own, all.ledgers[index(resource)]);
    const auto kernel = all.kernel[index(resource)];
    return std::max(own, kernel > others ? kernel - others : 0);
}

}  // namespace rdmaquota
