// The sidecar's part of the compiled policy: [sidecar], [[dynamic]] and the backstop. Applications do not read it.
//
//   +0      metrics_port, guard, web, rule_count, web_port
//   +8      backstop, a path, NUL-terminated; empty: none
//   +264    rules, most_dynamic_rules × 256 bytes, of which rule_count are in use
//
// It never changes in a published policy. Data and its translation only; shm/policy/node_policy.hpp has the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

struct CompiledRule {
    char device[device_name_bytes];      // NUL-terminated, or "*"
    std::uint32_t watch;                 // Resource
    std::uint32_t of;                    // CapacityOf
    std::uint32_t limit;                 // Resource
    std::uint32_t scope;                 // Scope
    std::uint32_t above, below, factor;  // per cent
    std::uint32_t reserved0;
    std::uint64_t capacity;
    std::uint64_t floor;
    std::uint64_t reserved[2];
    char tenant[tenant_name_bytes];  // NUL-terminated, or "*"
};
static_assert(sizeof(CompiledRule) == 256);

struct CompiledSidecar {
    std::uint16_t metrics_port;
    std::uint8_t guard;  // GuardMode
    std::uint8_t web;    // WebAccess
    std::uint16_t rule_count;
    std::uint16_t web_port;
    char backstop[256];
    CompiledRule rules[most_dynamic_rules];
};
static_assert(offsetof(CompiledSidecar, rules) == 264);

// The error says what there is no room for. `into` is zeroed.
Result<void> compile_sidecar(const Policy& policy, CompiledSidecar& into);

// Fills `sidecar` and `dynamic` of the policy. Leaves out rules whose words this version does not know.
void decompile_sidecar(const CompiledSidecar& compiled, Policy& policy);

// Its parts in the order of MetricsAccess, each of which ends with a NUL, in the policy's text. Empty for the defaults.
std::string compile_metrics(const MetricsAccess& metrics);
MetricsAccess decompile_metrics(std::string_view text);

}  // namespace rdmaquota
