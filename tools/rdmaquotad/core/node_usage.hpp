// What is in use on the node's devices: by the ledgers of all tenants, and by the kernel's count, which has what went
// around the quota, too. As of one moment; adding it up once serves all rules.
//
// Members can write any figure into their tenant's ledger. What the kernel counts whole is therefore its word alone, and
// of the rest no tenant is believed to use more than it may.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/rdmaquotad/core/node.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

class NodeUsage {
public:
    // What the kernel counts of everyone, if it is no use's `partial`.
    using Counted = std::function<bool(Resource)>;

    NodeUsage(const Node& node, const std::vector<KernelUse>& uses, const Counted& counted);

    // The kernel's figure, or the ledgers' where that is higher and the kernel may not know all.
    std::uint64_t of_node(const std::string& device, Resource resource) const;
    // The tenant's ledger, or what the kernel counts beyond all other ledgers, whichever is higher.
    std::uint64_t of_tenant(const Tenant& tenant, const std::string& device, Resource resource) const;

private:
    struct Sums {
        ResourceCounts ledgers{}, believed{}, kernel{};
        bool partial = false;
    };
    void add(const Tenant& tenant);
    const Sums& sums(const std::string& device) const;

    std::map<std::string, Sums> devices_;
    std::array<bool, resource_count> counted_{};
};

}  // namespace rdmaquota
