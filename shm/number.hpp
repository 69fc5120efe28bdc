// Numbers in the kernel's texts. Where glibc is new, strtoul and sscanf are symbols that older ones lack (__isoc23_…), and
// the provider is loaded by both.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdmaquota {

// The number that `text` begins with, after blanks.
inline std::optional<std::uint64_t> number_in(std::string_view text, int base = 10) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    std::uint64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number, base).ec != std::errc{}) return std::nullopt;
    return number;
}

// The number behind the first `key` in `text`.
inline std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key, int base = 10) noexcept {
    const auto at = text.find(key);
    return at == text.npos ? std::nullopt : number_in(text.substr(at + key.size()), base);
}

}  // namespace rdmaquota
