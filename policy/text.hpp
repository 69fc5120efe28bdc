// text("{} of {}", used, limit): as fmt::format, but without its buffer of 500 bytes on the stack. For what a program
// calls whose stack may be small (docs/costs.md).
#pragma once

#include <string>

#include <fmt/core.h>

namespace rdmaquota {

std::string format_text(fmt::string_view pattern, fmt::format_args values);

template <class... Values>
std::string text(fmt::format_string<Values...> pattern, Values&&... values) {
    return format_text(pattern, fmt::make_format_args(values...));
}

}  // namespace rdmaquota
