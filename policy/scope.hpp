// What a limit bounds: each process by itself, or the tenant as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

enum class Scope : std::uint32_t { process, tenant };
inline constexpr std::size_t scope_count = 2;

constexpr std::size_t index(Scope scope) noexcept { return static_cast<std::size_t>(scope); }

// "process", "tenant".
std::string_view name(Scope) noexcept;
Result<Scope> parse_scope(std::string_view);

}  // namespace rdmaquota
