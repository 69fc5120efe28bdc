// "{NAME}" in the names of tenants and in patterns.
#pragma once

#include <optional>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

// The braces that stand for the effective user id.
inline constexpr std::string_view user_braces = "user";

struct Braces {
    std::string_view before;  // the text in front of them
    std::string_view name;
};

// The next "{NAME}", which `rest` then lacks with all in front of it; none: no brace is left. Errors: braces that do
// not fit together, a NAME of other characters than a-z, 0-9 and '_'.
Result<std::optional<Braces>> take_braces(std::string_view& rest);

// Whether `text`, whose braces are right, has "{name}".
bool has_braces(std::string_view text, std::string_view name) noexcept;

}  // namespace rdmaquota
