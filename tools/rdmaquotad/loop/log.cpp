#include "tools/rdmaquotad/loop/log.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {

void log(Priority priority, std::string_view message) {
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    if (journal)
        fmt::print(stderr, "<{}>{}\n", static_cast<int>(priority), printable(message));
    else
        fmt::print(stderr, "rdmaquotad: {}\n", printable(message));
}

}  // namespace rdmaquota
