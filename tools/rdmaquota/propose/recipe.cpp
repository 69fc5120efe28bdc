#include "tools/rdmaquota/propose/recipe.hpp"

#include <algorithm>
#include <optional>
#include <regex>
#include <sstream>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "recipes.hpp"

namespace rdmaquota {
namespace {

constexpr Recipe all_recipes[] = {
    {"login", "users log in and build or test: each user by itself", recipe_texts::login},
    {"ai", "teams train models: guarantees, weights, soft limits", recipe_texts::ai},
    {"inference", "services serve models: each by its unit", recipe_texts::inference},
    {"storage", "a storage server: its programs are never refused, others are bounded", recipe_texts::storage},
    {"slurm", "Slurm's jobs: a tenant each", recipe_texts::slurm},
    {"kubernetes", "Kubernetes, a tenant for each namespace", recipe_texts::kubernetes},
    {"pods", "Kubernetes, a tenant for each pod", recipe_texts::pods},
};

constexpr std::uint64_t gib = 1ULL << 30;

struct Fraction {
    std::uint64_t over, under;
    std::uint64_t of(std::uint64_t whole) const { return whole / under * over; }
};

// "1/8 and 1/16 of the device's; …"
struct Remark {
    std::vector<Fraction> fractions;
    bool of_memory = false;
};

std::optional<Remark> remark_of(const std::string& comment) {
    static const std::regex whole(R"(^ ((?:\d+/\d+(?: and )?)+) of the (device's|node's memory))"), part(R"((\d+)/(\d+))");
    std::smatch found;
    if (!std::regex_search(comment, found, whole)) return std::nullopt;
    Remark remark;
    remark.of_memory = found[2] == "node's memory";
    const auto list = found[1].str();
    for (std::sregex_iterator at(list.begin(), list.end(), part), end; at != end; ++at)
        remark.fractions.push_back({std::stoull((*at)[1]), std::stoull((*at)[2])});
    return remark;
}

// Down to three digits.
std::uint64_t rounded(std::uint64_t amount) {
    std::uint64_t unit = 1;
    while (amount / unit >= 1000) unit *= 10;
    return std::max<std::uint64_t>(amount / unit * unit, 1);
}

std::string number_text(const Fraction& fraction, bool of_memory, std::uint64_t whole) {
    if (!of_memory) return std::to_string(rounded(fraction.of(whole)));
    const auto amount = fraction.of(whole);
    return amount < 10 * gib && amount % gib != 0 ? fmt::format("\"{}MiB\"", rounded(amount >> 20)) : fmt::format("\"{}GiB\"", rounded(amount / gib));
}

std::string scaled_line(const std::string& line, const NodeFigures& node) {
    static const std::regex number(R"re("\d+GiB"|\b\d+\b)re");
    const auto hash = line.find('#'), equals = line.find('=');
    if (hash == line.npos || equals == line.npos || equals > hash) return line;
    const auto remark = remark_of(line.substr(hash + 1));
    const auto resource = find_resource(std::string_view(line).substr(0, line.find_first_of(" =")));
    const auto whole = !remark || !resource ? 0 : remark->of_memory ? node.memory : node.device[index(*resource)];
    if (whole == 0) return line;
    const auto value = line.substr(equals, hash - equals);
    std::string text = line.substr(0, equals);
    std::size_t at = 0, n = 0;
    for (std::sregex_iterator found(value.begin(), value.end(), number), end; found != end && n < remark->fractions.size(); ++found, ++n) {
        text += value.substr(at, static_cast<std::size_t>(found->position()) - at) + number_text(remark->fractions[n], remark->of_memory, whole);
        at = static_cast<std::size_t>(found->position() + found->length());
    }
    auto rest = value.substr(at);
    rest.erase(rest.find_last_not_of(' ') + 1);
    text += rest;
    constexpr std::size_t column = 36;
    return text + std::string(std::max(column, text.size()) - text.size() + 1, ' ') + line.substr(hash);
}

std::string replaced(std::string text, std::string_view word, std::string_view by) {
    for (auto at = text.find(word); at != text.npos; at = text.find(word, at + by.size())) text.replace(at, word.size(), by);
    return text;
}

}  // namespace

std::span<const Recipe> recipes() { return all_recipes; }

std::string scaled(std::string_view recipe, const NodeFigures& node) {
    std::istringstream lines{std::string(recipe)};
    std::string text;
    for (std::string line; std::getline(lines, line);) text += scaled_line(line, node) + "\n";
    return text;
}

std::string with_groups(std::string recipe, const std::vector<std::string>& groups) {
    constexpr std::string_view first = "vision", second = "language";
    const auto begin = recipe.find(fmt::format("[tenant.\"{}\"]", second)), end = recipe.find("[tenant.default.");
    if (groups.empty() || begin == recipe.npos || end == recipe.npos) return recipe;
    const auto block = recipe.substr(begin, end - begin);
    std::string text = replaced(recipe.substr(0, begin), first, groups.front());
    for (std::size_t i = 1; i < groups.size(); ++i) text += replaced(block, second, groups[i]);
    return text + recipe.substr(end);
}

}  // namespace rdmaquota
