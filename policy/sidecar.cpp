#include "policy/sidecar.hpp"

#include <array>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::array<std::string_view, 2> tables{"process", "tenant"};
constexpr std::array<std::string_view, 4> capacities{"limit", "node", "device", "amount"};

}  // namespace

std::string_view name(PolicyTable table) noexcept { return tables[static_cast<std::size_t>(table)]; }
std::string_view name(CapacityOf of) noexcept { return capacities[static_cast<std::size_t>(of)]; }

Result<PolicyTable> parse_policy_table(std::string_view text) {
    for (const auto table : {PolicyTable::process, PolicyTable::tenant})
        if (text == name(table)) return table;
    return Error{fmt::format("'{}' is no scope; write \"process\" or \"tenant\"", text)};
}

}  // namespace rdmaquota
