// What is in use on the node's devices: by the ledgers of all tenants, and by the kernel's count, which has what went
// around the quota, too. As of one moment; adding it up once serves all rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/rdmaquotad/core/node.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

class NodeUsage {
public:
    NodeUsage(const Node& node, const std::vector<KernelUse>& uses);

    // The ledgers' figure or the kernel's, whichever is higher.
    std::uint64_t of_node(const std::string& device, Resource resource) const;
    // The tenant's ledger, or what the kernel counts beyond all other ledgers, whichever is higher.
    std::uint64_t of_tenant(const Tenant& tenant, const std::string& device, Resource resource) const;

private:
    struct Sums {
        ResourceCounts ledgers{}, kernel{};
    };
    const Sums& sums(const std::string& device) const;

    std::map<std::string, Sums> devices_;
};

}  // namespace rdmaquota
