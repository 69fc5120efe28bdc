#include "tools/rdmaquota/terminal.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::size_t bar_cells = 12;

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

std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

Colour urgency(double fraction) {
    if (fraction >= 1) return Colour::red;
    return fraction >= 0.8 ? Colour::yellow : Colour::green;
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

Terminal standard_output() {
    Terminal terminal;
    terminal.is_terminal = ::isatty(STDOUT_FILENO) == 1;
    const char* no_colour = std::getenv("NO_COLOR");
    const char* kind = std::getenv("TERM");
    const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
    terminal.colour = terminal.is_terminal && !dumb && (no_colour == nullptr || *no_colour == '\0');
    std::setlocale(LC_CTYPE, "");
    terminal.unicode = terminal.is_terminal && std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
    return terminal;
}

std::string coloured(const Terminal& terminal, Colour colour, std::string_view text) {
    static constexpr std::array<std::string_view, 6> codes{"", "1", "2", "31", "33", "32"};
    if (!terminal.colour || colour == Colour::none) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

std::string bar(const Terminal& terminal, std::uint64_t used, std::uint64_t limit) {
    const double fraction = limit == 0 ? 1 : static_cast<double>(used) / static_cast<double>(limit);
    const auto wanted = static_cast<std::size_t>(std::min(fraction, 1.0) * static_cast<double>(bar_cells));
    const auto filled = used != 0 ? std::max<std::size_t>(wanted, 1) : wanted;
    const std::string_view full = terminal.unicode ? "█" : "#";
    const std::string_view empty = terminal.unicode ? "░" : ".";
    std::string front;
    std::string back;
    for (std::size_t i = 0; i < bar_cells; ++i) (i < filled ? front : back) += i < filled ? full : empty;
    return fmt::format("{}{} {:.0f}%", coloured(terminal, urgency(fraction), front),
                       coloured(terminal, Colour::dim, back), fraction * 100);
}

Table::Table(std::vector<std::string> header, std::vector<Align> alignment) : alignment_(std::move(alignment)) {
    rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

void Table::print(const Terminal& terminal) const {
    std::vector<std::size_t> widths(alignment_.size(), 0);
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    for (const auto& row : rows_)
        fmt::print("{}\n",
                   &row == &rows_.front() ? coloured(terminal, Colour::bold, line(row, widths)) : line(row, widths));
}

std::string Table::line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) const {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - width(row[i]), ' ');
        const bool last = i + 1 == row.size();
        if (alignment_[i] == Align::right) text += padding;
        text += row[i];
        if (alignment_[i] == Align::left && !last) text += padding;
        if (!last) text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

}  // namespace rdmaquota
