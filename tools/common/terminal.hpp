// Text for people: safe to print, within what the terminal can show, in aligned columns.
#pragma once

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
};
Terminal standard_output();

enum class Colour { none, bold, dim, red, yellow, green };
std::string coloured(const Terminal& terminal, Colour colour, std::string_view text);

// A bar of fixed width for `used` of `limit`, with the percentage behind it.
std::string bar(const Terminal& terminal, std::uint64_t used, std::uint64_t limit);

// The width of a text in cells, one for each code point.
std::size_t cells_of(std::string_view text);

enum class Align { left, right };

// Rows of cells, each column as wide as its widest cell. The last column may hold colours.
class Table {
public:
    Table(std::vector<std::string> header, std::vector<Align> alignment);
    void add(std::vector<std::string> row);
    void print(const Terminal& terminal) const;

private:
    std::string line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) const;

    std::vector<std::vector<std::string>> rows_;
    std::vector<Align> alignment_;
};

}  // namespace rdmaquota
