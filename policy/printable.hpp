// Text from elsewhere, made fit for one line of a log or a terminal.
#pragma once

#include <string>
#include <string_view>

namespace rdmaquota {

// The text with control characters (line ends, escape sequences), those that reorder text, and what is
// no UTF-8 written as \xNN.
std::string printable(std::string_view text);

// Between double quotes, as TOML, JSON and Prometheus read it: with a backslash before quotes and backslashes. The text is
// printable.
std::string in_quotes(std::string_view text);

}  // namespace rdmaquota
