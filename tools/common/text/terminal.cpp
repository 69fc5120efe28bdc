#include "tools/common/text/terminal.hpp"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::size_t bar_cells = 12;
constexpr std::size_t least_width_with_bars = 100;  // of a terminal; below, the percentage alone

Colour urgency(double fraction) {
    if (fraction >= 1) return Colour::red;
    return fraction >= 0.8 ? Colour::yellow : Colour::green;
}

// How many bytes of a text without colours are its first `cells` cells.
std::size_t bytes_of_cells(std::string_view text, std::size_t cells) {
    std::size_t at = 0;
    for (; at < text.size(); ++at)
        if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && cells-- == 0) break;
    return at;
}

winsize size_of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

}  // namespace

std::size_t cells_of(std::string_view text) {
    std::size_t cells = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\x1b') i = std::min(text.find('m', i), text.size());
        else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++cells;
    }
    return cells;
}

std::string shortened(const Terminal& terminal, std::string_view text, std::size_t width) {
    if (cells_of(text) <= width) return std::string(text);
    const std::string_view rest = terminal.unicode ? "…" : "...";
    const auto room = width - std::min(width, cells_of(rest));
    return std::string(text.substr(0, bytes_of_cells(text, room))).append(rest);
}

std::string wrapped(const Terminal& terminal, std::string_view text, std::size_t indent) {
    if (terminal.width == 0 || cells_of(text) <= terminal.width) return std::string(text);
    std::string lines;
    auto room = terminal.width;
    while (cells_of(text) > room) {
        const auto most = bytes_of_cells(text, room);
        auto end = text.find_last_of(' ', most);
        if (end == text.npos || text.find_first_not_of(' ') > end) end = most;
        lines.append(text.substr(0, end));
        text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
        if (text.empty()) return lines;
        lines.append("\n").append(indent, ' ');
        room = std::max<std::size_t>(terminal.width - std::min(indent, terminal.width), 8);
    }
    return lines.append(text);
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
    if (!terminal.is_terminal) return terminal;
    const auto size = size_of_terminal();
    terminal.width = size.ws_col;
    terminal.height = size.ws_row;
    return terminal;
}

std::string coloured(const Terminal& terminal, Colour colour, std::string_view text) {
    static constexpr std::array<std::string_view, 6> codes{"", "1", "2", "31", "33", "32"};
    if (!terminal.colour || colour == Colour::none) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
}

std::string bar(const Terminal& terminal, std::uint64_t used, std::uint64_t limit) {
    if (used == 0 && limit == 0) return {};
    const double fraction = limit == 0 ? 1 : static_cast<double>(used) / static_cast<double>(limit);
    if (terminal.width != 0 && terminal.width < least_width_with_bars)
        return coloured(terminal, urgency(fraction), fmt::format("{:.0f}%", fraction * 100));
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

// The widest column of words gives way first, but for the last one, which is broken into lines.
Table::Widths Table::fit(const Terminal& terminal) const {
    constexpr std::size_t least_word = 10, least_text = 20;
    Widths widths(alignment_.size(), 0);
    for (const auto& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cells_of(row[i]));
    if (terminal.width == 0) return widths;
    const auto columns = widths.size() - static_cast<std::size_t>(std::count(widths.begin(), widths.end(), 0U));
    const auto wanted = [&] {
        return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + 2 * (columns - 1);
    };
    const bool text = alignment_.back() == Align::left;
    if (text && wanted() > terminal.width) {
        const auto others = wanted() - widths.back();
        const auto room = terminal.width - std::min(terminal.width, others);
        widths.back() = std::min(widths.back(), std::max(room, least_text));
    }
    while (wanted() > terminal.width) {
        std::size_t widest = widths.size();
        for (std::size_t i = 0; i + (text ? 1 : 0) < widths.size(); ++i)
            if (alignment_[i] == Align::left && widths[i] > least_word &&
                (widest == widths.size() || widths[i] > widths[widest]))
                widest = i;
        if (widest == widths.size()) break;
        --widths[widest];
    }
    return widths;
}

std::string Table::text(const Terminal& terminal) const {
    const auto widths = fit(terminal);
    std::string lines;
    for (const auto& row : rows_) {
        const auto text = line(terminal, row, widths);
        lines += (&row == &rows_.front() ? coloured(terminal, Colour::bold, text) : text) + "\n";
    }
    return lines;
}

void Table::print(const Terminal& terminal) const { fmt::print("{}", text(terminal)); }

std::string Table::line(const Terminal& terminal, const std::vector<std::string>& row, const Widths& widths) const {
    std::string text;
    std::size_t begin = 0;  // of the column
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (widths[i] == 0) continue;  // a column that has nothing
        const bool last = i + 1 == row.size();
        if (last && alignment_[i] == Align::left && cells_of(row[i]) > widths[i] && row[i].find('\x1b') == row[i].npos) {
            Terminal column;
            column.width = widths[i];
            auto cell = wrapped(column, row[i], 0);
            for (auto at = cell.find('\n'); at != cell.npos; at = cell.find('\n', at + begin + 1))
                cell.insert(at + 1, begin, ' ');
            return text + cell;
        }
        const auto cell = shortened(terminal, row[i], std::max(widths[i], alignment_[i] == Align::right ? cells_of(row[i]) : 0));
        const std::string padding(widths[i] - std::min(widths[i], cells_of(cell)), ' ');
        if (alignment_[i] == Align::right) text += padding;
        text += cell;
        if (alignment_[i] == Align::left && !last) text += padding;
        if (!last) text += "  ";
        begin += widths[i] + 2;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

}  // namespace rdmaquota
