// Text for people: safe to print, within what the terminal can show, in aligned columns.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "policy/printable.hpp"

namespace rdmaquota {

// What standard output can show.
struct Terminal {
    bool is_terminal = false;  // draw bars
    bool colour = false;       // and NO_COLOR is not set
    bool unicode = false;      // and its locale is UTF-8
    std::size_t width = 0;     // in cells; 0: lines may be of any length
    std::size_t height = 0;    // in lines; 0: as many as one likes
};
Terminal standard_output();

enum class Colour { none, bold, dim, red, yellow, green };
std::string coloured(const Terminal& terminal, Colour colour, std::string_view text);

// A bar of fixed width for `used` of `limit`, with the percentage behind it. Empty for 0 of 0, of which there is none.
std::string bar(const Terminal& terminal, std::uint64_t used, std::uint64_t limit);

// The width of a text in cells, one for each code point; colours have none.
std::size_t cells_of(std::string_view text);

// Broken between words where the terminal ends; all lines but the first begin with `indent` spaces. A word that is longer
// than a line is broken, too.
std::string wrapped(const Terminal& terminal, std::string_view text, std::size_t indent);
// At most `width` cells; "..." stands for the rest.
std::string shortened(const Terminal& terminal, std::string_view text, std::size_t width);

enum class Align { left, right };

// Rows of cells, each column as wide as its widest cell. Where the terminal is too narrow, the last column is broken between
// words if it is of text, and long words in other columns are shortened.
class Table {
public:
    Table(std::vector<std::string> header, std::vector<Align> alignment);
    void add(std::vector<std::string> row);
    std::string text(const Terminal& terminal) const;  // lines, each with its end
    void print(const Terminal& terminal) const;

private:
    using Widths = std::vector<std::size_t>;
    Widths fit(const Terminal& terminal) const;
    std::string line(const Terminal& terminal, const std::vector<std::string>& row, const Widths& widths) const;

    std::vector<std::vector<std::string>> rows_;
    std::vector<Align> alignment_;
};

}  // namespace rdmaquota
