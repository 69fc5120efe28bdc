// This node's row of docs/compatibility.md.
#pragma once

#include <string>
#include <string_view>

namespace rdmaquota {

// Whether the suites run with this libibverbs, whose file's name ends in its release ("libibverbs.so.1.14.44.0") and whose private ABI
// is `pabi`, and with this kernel ("6.1.0-49-amd64").
std::string compatibility(std::string_view file, std::string_view pabi, std::string_view kernel);

}  // namespace rdmaquota
