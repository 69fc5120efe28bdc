#include "policy/sidecar.hpp"

#include <array>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::array<std::string_view, 2> scopes{"process", "tenant"};
constexpr std::array<std::string_view, 4> capacities{"limit", "node", "device", "amount"};

}  // namespace

std::string_view name(Scope scope) noexcept { return scopes[static_cast<std::size_t>(scope)]; }
std::string_view name(GuardMode mode) noexcept {
    switch (mode) {
        case GuardMode::watch: return "watch";
        case GuardMode::deny: return "deny";
        default: return "off";
    }
}

std::string_view name(WebAccess access) noexcept { return access == WebAccess::all ? "all" : "token"; }

std::string_view name(CapacityOf of) noexcept { return capacities[static_cast<std::size_t>(of)]; }

Result<Scope> parse_scope(std::string_view text) {
    for (const auto scope : {Scope::process, Scope::tenant})
        if (text == name(scope)) return scope;
    return Error{fmt::format("'{}' is no scope; write \"process\" or \"tenant\"", text)};
}

}  // namespace rdmaquota
