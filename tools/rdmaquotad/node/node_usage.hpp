// What is in use on the node's devices: by the ledgers of all tenants, and by the kernel's count, which has what went
// around the quota, too. As of one moment; adding it up once serves all rules.
//
// Members can write any figure into their tenant's ledger. A ledger's figure may therefore be shown, where it is no more than
// the tenant's limit, and may change limits of that tenant itself. Limits of other tenants follow the kernel's figures only.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

class NodeUsage {
public:
    // What the kernel counts of everyone, if it is no use's `partial`.
    using Counted = std::function<bool(Resource)>;

    NodeUsage(const Node& node, const std::vector<KernelUse>& uses, const Counted& counted);

    // To be shown: the kernel's figure, or the ledgers' where that is higher and the kernel may not know all.
    std::uint64_t of_node(const std::string& device, Resource resource) const;
    // What the tenant's limits may follow: the node's use by the kernel's figures, or what the tenant's own ledger says where that
    // is higher and the kernel may not know all.
    std::uint64_t of_node_for(const Tenant& tenant, const std::string& device, Resource resource) const;
    // By the kernel's figures alone.
    std::uint64_t counted(const std::string& device, Resource resource) const { return sums(device).kernel[index(resource)]; }
    // The tenant's own ledger; the kernel's figure where that is higher and no other tenant has a ledger.
    std::uint64_t of_tenant(const Tenant& tenant, const std::string& device, Resource resource) const;

private:
    struct Sums {
        ResourceCounts believed{}, kernel{};
        bool partial = false;
    };
    void add(const Tenant& tenant);
    const Sums& sums(const std::string& device) const;

    std::map<std::string, Sums> devices_;
    bool knows_all(const Sums& sums, Resource resource) const noexcept { return counted_[index(resource)] && !sums.partial; }

    std::size_t tenants_ = 0;  // with a ledger
    std::array<bool, resource_count> counted_{};
};

}  // namespace rdmaquota
