#include "policy/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// The code point at the start of `text` and its length in bytes; length 0 when it is not UTF-8.
struct CodePoint {
    std::uint32_t value;
    std::size_t bytes;
};
CodePoint decode(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {0, 0};
    std::uint32_t value = first & (0x7fU >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        const auto next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0) != 0x80) return {0, 0};
        value = value << 6 | (next & 0x3fU);
    }
    static constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    if (value < least[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {0, 0};
    return {value, bytes};
}

// Control characters, and those that reorder or split lines.
bool steers_terminal(std::uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto [value, bytes] = decode(text);
        const auto length = std::max<std::size_t>(bytes, 1);
        if (bytes != 0 && !steers_terminal(value))
            result += text.substr(0, length);
        else
            for (const char c : text.substr(0, length))
                result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        text.remove_prefix(length);
    }
    return result;
}

std::string in_quotes(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

}  // namespace rdmaquota
