#include "policy/limit_key.hpp"

#include <fmt/core.h>

#include "policy/tenant.hpp"

namespace rdmaquota {

std::string_view name(LimitPart part, Resource resource) noexcept {
    switch (part) {
        case LimitPart::guarantee:
            return "guarantee";
        case LimitPart::soft:
            return is_rate(resource) ? "burst" : "soft";
        default:
            return "limit";
    }
}

std::string holder_of(const LimitKey& key) {
    if (key.tenant == node_tenant) return "the node";
    if (key.tenant.empty()) return "each process";
    return fmt::format("{}tenant {}", key.scope == Scope::process ? "each process of " : "", key.tenant);
}

}  // namespace rdmaquota
