#include "tools/rdmaquotad/kernel/verifier_words.hpp"

#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <bpf/libbpf.h>
#include <fmt/core.h>

namespace rdmaquota {
namespace {

std::string words;

// The log ends with what was wrong, and then with figures.
std::string last_line(std::string_view log) {
    log = log.substr(0, log.find("\nprocessed "));
    return std::string(log.substr(log.rfind('\n') + 1));
}

int keep(libbpf_print_level, const char* format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    std::vector<char> text(static_cast<std::size_t>(std::vsnprintf(nullptr, 0, format, arguments)) + 1);
    std::vsnprintf(text.data(), text.size(), format, again);
    va_end(again);
    const std::string_view line(text.data());
    if (line.find("BEGIN PROG LOAD LOG") == line.npos || !words.empty()) return 0;
    const auto name = line.substr(line.find('\'') + 1);
    words = fmt::format(" ({}: {})", name.substr(0, name.find('\'')), last_line(line));
    return 0;
}

}  // namespace

void keep_verifier_words() {
    words.clear();
    libbpf_set_print(keep);
}

std::string take_verifier_words() { return std::exchange(words, {}); }

}  // namespace rdmaquota
