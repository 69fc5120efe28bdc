// A first policy for a kind of node: a recipe of rdma-core.d/recipes, with numbers that fit the node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/device_query.hpp"

namespace rdmaquota {

struct Recipe {
    std::string_view kind;     // as `rdmaquota init KIND` takes it
    std::string_view meaning;  // in a few words
    std::string_view text;     // TOML
};
std::span<const Recipe> recipes();

// What the node has; 0: not known.
struct NodeFigures {
    DeviceMaxima device{};     // of several devices the smallest of each
    std::uint64_t memory = 0;  // bytes
};

// The recipe's text, where a remark such as "# 1/8 and 1/16 of the device's" or "… of the node's memory" says how the numbers of
// its line come about. Where the node's figure is not known, the recipe's own numbers stay.
std::string scaled(std::string_view recipe, const NodeFigures& node);

// The recipe of teams with a tenant for each of these groups; without any, as it is.
std::string with_groups(std::string recipe, const std::vector<std::string>& groups);

}  // namespace rdmaquota
