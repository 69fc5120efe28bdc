#include "tools/common/terminal.hpp"

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

Colour urgency(double fraction) {
    if (fraction >= 1) return Colour::red;
    return fraction >= 0.8 ? Colour::yellow : Colour::green;
}

}  // namespace

std::size_t cells_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
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
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cells_of(row[i]));
    for (const auto& row : rows_)
        fmt::print("{}\n",
                   &row == &rows_.front() ? coloured(terminal, Colour::bold, line(row, widths)) : line(row, widths));
}

std::string Table::line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) const {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (widths[i] == 0) continue;  // a column that has nothing
        const std::string padding(widths[i] - cells_of(row[i]), ' ');
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
