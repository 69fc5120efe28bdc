#include "tools/rdmaquota/command.hpp"

#include <cstdio>

#include <fmt/core.h>

#include "tools/common/text/terminal.hpp"

namespace rdmaquota {

void warn(std::string_view message) { fmt::print(stderr, "rdmaquota: {}\n", printable(message)); }

int failed(std::string_view message) {
    warn(message);
    return status_failed;
}

int wrong_usage(std::string_view message) {
    warn(message);
    return status_usage;
}

}  // namespace rdmaquota
