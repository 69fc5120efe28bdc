// Names one limit of the node.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

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

// The values that a tenant has for one resource of a device.
enum class LimitPart : std::uint8_t {
    limit,
    guarantee,  // reserved for it out of what the tenant above may use
    soft,       // may be exceeded for a grace period; of a rate: its burst
};

// As the policy file has it. A rate has a burst in the place of a soft limit.
std::string_view name(LimitPart, Resource) noexcept;

struct LimitChange {
    LimitKey key;
    std::uint64_t limit = unset;
    LimitPart part = LimitPart::limit;
};

// Who is bounded: "tenant physics/atlas", "each process of tenant physics/atlas", "each process", "the node".
std::string holder_of(const LimitKey& key);

}  // namespace rdmaquota
