// What `rdmaquota top` shows: tables of a snapshot, sorted and cut to the size of a screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/common/snapshot.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {

struct TopColumn {
    std::string name;
    Align align;
};

struct TopCell {
    std::string text;  // safe to print
    double key = 0;    // what a column of numbers is sorted by; columns of words by their text
};

struct TopTable {
    std::vector<TopColumn> columns;
    std::vector<std::vector<TopCell>> rows;
};

enum class TopView { tenant, device, process };

TopTable top_table(const TenantView& tenant, TopView view);

// The column by which a view is sorted at first: how full the limit is, or what is held.
std::size_t first_sort(TopView view);

struct TopPlace {
    std::size_t sort = 0;    // column
    bool reverse = false;    // instead of numbers falling and words rising
    std::size_t offset = 0;  // rows scrolled away; no more than leave a full screen
};

// A header and rows, `height` (at least 1) lines at most, none wider than `width` cells; columns that do not fit are
// left out at the right. Sorts the table and brings `place` into its bounds.
std::vector<std::string> lay_out(TopTable& table, TopPlace& place, std::size_t width, std::size_t height,
                                 const Terminal& terminal);

}  // namespace rdmaquota
