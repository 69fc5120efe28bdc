// Says of tenants that go above a soft limit, and of those that are below it again. One thread.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "policy/resource.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"

namespace rdmaquota {

class SoftLimits {
public:
    SoftLimits(Node& node, NodeEvents& events) : node_(node), events_(events) {}

    // Call after each look at the ledgers.
    void look();

private:
    using Place = std::tuple<std::string, std::string, Resource>;  // a tenant's name, and a device
    void add_above(const Tenant& tenant, std::set<Place>& above);

    Node& node_;
    NodeEvents& events_;
    std::set<Place> above_;
};

}  // namespace rdmaquota
