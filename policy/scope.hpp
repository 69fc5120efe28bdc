// What a limit bounds: each process by itself, or the tenant as a whole.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

enum class Scope : std::uint32_t { process, tenant };

// "process", "tenant".
std::string_view name(Scope) noexcept;
Result<Scope> parse_scope(std::string_view);

}  // namespace rdmaquota
