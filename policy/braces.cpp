#include "policy/braces.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

bool in_name(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

Result<std::optional<Braces>> take_braces(std::string_view& rest) {
    const auto open = rest.find_first_of("{}");
    if (open == rest.npos) return std::optional<Braces>();
    const auto close = rest.find_first_of("{}", open + 1);
    if (rest[open] == '}' || close == rest.npos || rest[close] == '{')
        return Error{"'{' and '}' do not fit together; write {NAME}"};
    const Braces found{rest.substr(0, open), rest.substr(open + 1, close - open - 1)};
    if (found.name.empty() || !std::all_of(found.name.begin(), found.name.end(), in_name))
        return Error{
            fmt::format("'{{{}}}' has no name of a-z, 0-9 and '_'; write one such as {{job}}", printable(found.name))};
    rest.remove_prefix(close + 1);
    return std::optional(found);
}

bool has_braces(std::string_view text, std::string_view name) noexcept {
    for (auto open = text.find('{'); open != text.npos; open = text.find('{', open + 1))
        if (const auto close = text.find('}', open);
            close != text.npos && text.substr(open + 1, close - open - 1) == name)
            return true;
    return false;
}

}  // namespace rdmaquota
