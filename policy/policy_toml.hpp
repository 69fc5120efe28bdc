// The policy file as TOML: the one place that includes toml++, and how its positions are told.
//
// toml++ is taken as headers so that the tools need no library at run time, without exceptions,
// and with little nesting, which a policy does not need and which would cost stack.
#pragma once

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 16

// toml++ 3.3 asserts that a table header starts with a key and aborts on "[*]", or, with NDEBUG,
// lets the compiler take it for granted. Without the assertion its own error handling is reached.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <string>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

// The file's bytes. Refuses directories and anything above 1 MiB (also endless devices).
Result<std::string> read_text(const std::string& path);

// `file` is the name for error messages. Errors: "FILE:LINE:COL: what; what to do".
Result<toml::table> parse_toml(const std::string& text, const std::string& file);

// "FILE:LINE:COL: "
std::string place(std::string_view file, const toml::source_position& position);

}  // namespace rdmaquota
