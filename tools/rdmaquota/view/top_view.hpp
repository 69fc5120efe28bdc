// What `rdmaquota top` shows: tables of a snapshot, sorted and cut to the size of a screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/common/views/snapshot.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {

struct TopColumn {
    std::string name;
    Align align;
};

struct TopCell {
    std::string text;  // safe to print
    double key = 0;    // by which a column of numbers is sorted; columns of words are by their text
};

struct TopTable {
    std::vector<TopColumn> columns;
    std::vector<std::vector<TopCell>> rows;
    std::size_t ties = 0;  // the column of numbers by which rows are sorted that are equal in the chosen one
};

enum class TopView { tenant, device, process, user };

TopTable top_table(const std::vector<TenantView>& tenants, TopView view);

// The first lines, each of at most `width` cells: `title`, on two lines where one is too short, else an empty one.
std::vector<std::string> title_lines(const std::string& title, std::size_t width);

// The column that a view is sorted by at first: how full the limit is, or what is held.
std::size_t first_sort(TopView view);

// What the user has chosen.
struct TopState {
    std::size_t sort = 0;    // column
    bool reverse = false;    // else numbers fall and words rise
    std::size_t offset = 0;  // rows scrolled away at the top
    std::string filter = {};  // only rows with a word that contains this, in whatever case
};

// What the keys do.
std::vector<std::string> top_help();

// A header and rows, at most `height` (at least 1) lines of at most `width` cells; columns in which no row has anything are left
// out, long names are shortened in the middle, and columns on the right that still do not fit are left out. Sorts the table and brings `state` into bounds, so that the screen is full where there are rows enough.
std::vector<std::string> lay_out(TopTable& table, TopState& state, std::size_t width, std::size_t height,
                                 const Terminal& terminal);

}  // namespace rdmaquota
