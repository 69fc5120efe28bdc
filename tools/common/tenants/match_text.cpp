#include "tools/common/tenants/match_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace rdmaquota {

std::string match_words(const Match& match) {
    const std::array<std::pair<const char*, const std::string*>, 4> parts{
        {{"user", &match.user}, {"group", &match.group}, {"cgroup", &match.cgroup}, {"unit", &match.unit}}};
    std::string words;
    for (const auto& [what, value] : parts)
        if (!value->empty()) words += fmt::format("{}{} {}", words.empty() ? "" : " and ", what, *value);
    return words.empty() ? "every user" : words;
}

std::string match_words(const Policy& policy, const NodePolicy::Verdict& verdict) {
    if (!verdict.match) return "no match holds";
    const auto* from = policy.find(verdict.from);
    const auto what = is_template(verdict.from) ? "match {} of template {}, {}" : "match {} of tenant {}, {}";
    const bool known = from != nullptr && *verdict.match < from->matches.size();
    if (known && from->matches[*verdict.match].bound)
        return fmt::format("a container was bound to tenant {}, {}", verdict.from, match_words(from->matches[*verdict.match]));
    const auto bound = from == nullptr ? 0 : std::count_if(from->matches.begin(), from->matches.end(),
                                                           [](const Match& match) { return match.bound; });
    return fmt::format(fmt::runtime(what), *verdict.match + 1 - static_cast<std::size_t>(bound), verdict.from,
                       known ? match_words(from->matches[*verdict.match]) : "");
}

}  // namespace rdmaquota
