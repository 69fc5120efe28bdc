// Names one limit of the node.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "policy/limit.hpp"
#include "policy/resource.hpp"
#include "policy/scope.hpp"

namespace rdmaquota {

struct LimitKey {
    std::string tenant;  // or node_tenant; empty, for Scope::process: each process of every tenant
    Scope scope = Scope::tenant;
    std::string device;  // valid_device
    Resource resource{};

    auto operator<=>(const LimitKey&) const = default;
};

struct LimitChange {
    LimitKey key;
    std::uint64_t limit = unset;
};

// Who is bounded: "tenant physics/atlas", "each process of tenant physics/atlas", "each process", "the node".
std::string holder_of(const LimitKey& key);

}  // namespace rdmaquota
