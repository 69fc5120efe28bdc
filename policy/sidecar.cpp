#include "policy/sidecar.hpp"

#include <array>

#include <arpa/inet.h>

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

AddressKind address_kind(const std::string& text) noexcept {
    in_addr four{};
    in6_addr six{};
    if (::inet_pton(AF_INET, text.c_str(), &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET ? AddressKind::loopback : AddressKind::other;
    if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return AddressKind::none;
    return IN6_IS_ADDR_LOOPBACK(&six) ? AddressKind::loopback : AddressKind::other;
}

Result<Scope> parse_scope(std::string_view text) {
    for (const auto scope : {Scope::process, Scope::tenant})
        if (text == name(scope)) return scope;
    return Error{fmt::format("'{}' is no scope; write \"process\" or \"tenant\"", text)};
}

}  // namespace rdmaquota
