#include "policy/pattern.hpp"

#include <algorithm>
#include <bitset>

#include <fmt/core.h>

#include "policy/braces.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view any_elements = "**";

// '*' or "{NAME}" in an element, and how much of the text it has now.
struct Wildcard {
    std::size_t behind = 0;  // where the pattern goes on
    std::size_t begin = 0;   // in the text
    std::size_t end = 0;
    std::size_t captures = 0;  // how many there were before this one
    bool captures_text = false;
    std::string_view name;

    Wildcard() = default;
    Wildcard(std::string_view pattern, std::size_t at, std::size_t text_at, std::size_t count) noexcept
        : behind(at + 1), begin(text_at), end(text_at), captures(count), captures_text(pattern[at] == '{') {
        if (!captures_text) return;
        behind = std::min(pattern.find('}', at), pattern.size() - 1) + 1;
        name = pattern.substr(at + 1, behind - at - 2);
        ++end;
    }

    void store(std::string_view text, Captures& into) const noexcept {
        into.count = captures;
        if (captures_text && captures < most_captures)
            into.list[into.count++] = {name, text.substr(begin, end - begin)};
    }
};

// Only the last wildcard is ever widened: what stands between two has its first place already, and a later one would
// leave less text for the rest.
template <class Same>
bool fits(std::string_view pattern, std::string_view text, Captures& captures, Same same) noexcept {
    Wildcard last;
    bool any = false;
    std::size_t p = 0, t = 0;
    while (p < pattern.size() || t < text.size()) {
        if (p < pattern.size() && (pattern[p] == '*' || pattern[p] == '{')) {
            last = Wildcard(pattern, p, t, captures.count);
            any = true;
        } else if (p < pattern.size() && t < text.size() && same(pattern[p], text[t])) {
            ++p, ++t;
            continue;
        } else if (any) {
            ++last.end;
        } else {
            return false;
        }
        if (last.end > text.size()) return false;
        last.store(text, captures);
        p = last.behind, t = last.end;
    }
    return true;
}

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Whether an element can be `before`, a user's number, `after`. The number fits digits of the pattern, or, for a user
// whom the pattern does not name, its wildcards only.
bool fits_user(std::string_view pattern, std::string_view before, std::string_view after, bool named) noexcept {
    std::array<char, 32> text;
    for (std::size_t digits = 1; digits <= 10; ++digits) {
        auto end = std::copy(before.begin(), before.end(), text.begin());
        end = std::copy(after.begin(), after.end(), std::fill_n(end, digits, '#'));
        Captures ignored;
        if (fits(pattern, {text.data(), static_cast<std::size_t>(end - text.begin())}, ignored,
                 [named](char p, char t) { return t == '#' ? named && is_digit(p) : p == t; }))
            return true;
    }
    return false;
}

// All places in a path pattern that a path can have come to, by the number of elements before it.
class Places {
public:
    explicit Places(std::string_view pattern) noexcept {
        for (auto element = take_element(pattern); !element.empty() && count_ < elements_.size();
             element = take_element(pattern))
            elements_[count_++] = element;
        at_[0] = true;
        pass_any_elements();
    }

    bool any() const noexcept { return at_.any(); }
    bool at_end() const noexcept { return at_[count_]; }

    // Goes on by an element that fits the pattern's where `may_be` says so.
    template <class MayBe>
    void step(MayBe may_be) noexcept {
        Set next;
        for (std::size_t i = 0; i < count_; ++i)
            if (at_[i] && elements_[i] == any_elements)
                next[i] = true;
            else if (at_[i] && may_be(elements_[i]))
                next[i + 1] = true;
        at_ = next;
        pass_any_elements();
    }

private:
    static constexpr std::size_t most = longest_pattern / 2 + 1;
    using Set = std::bitset<most + 1>;

    void pass_any_elements() noexcept {
        for (std::size_t i = 0; i < count_; ++i)
            if (at_[i] && elements_[i] == any_elements) at_[i + 1] = true;
    }

    std::array<std::string_view, most> elements_;
    std::size_t count_ = 0;
    Set at_;
};

bool reaches_below_manager(std::string_view pattern, bool named) noexcept {
    Places places(pattern);
    if (places.at_end()) return false;
    places.step([](std::string_view element) {
        Captures ignored;
        return element_matches(element, "user.slice", ignored);
    });
    if (places.at_end()) return false;
    places.step([named](std::string_view element) { return fits_user(element, "user-", ".slice", named); });
    if (places.at_end()) return false;
    places.step([named](std::string_view element) { return fits_user(element, "user@", ".service", named); });
    return places.any();
}

Error no_pattern(std::string_view what, std::string_view pattern, std::string_view why) {
    return {fmt::format("'{}' is no pattern for a {}: {}", printable(pattern), what, why)};
}

std::string_view problem_of_text(std::string_view pattern) noexcept {
    if (pattern.size() > longest_pattern) return "it is longer than 255 bytes";
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    return std::any_of(pattern.begin(), pattern.end(), control) ? "it has a control character" : "";
}

std::string_view problem_of_element(std::string_view element) noexcept {
    if (element.empty()) return "a part of it is empty; write one '/' between two parts, and none at the end";
    if (element == "." || element == "..") return "'.' and '..' are not possible";
    if (element != any_elements && element.find(any_elements) != element.npos)
        return "** must stand alone between '/'; within a part, write *";
    return "";
}

std::string problem_of_captures(std::string_view pattern) {
    std::array<std::string_view, most_captures> names;
    std::size_t count = 0;
    for (;;) {
        const auto braces = take_braces(pattern);
        if (!braces) return braces.error();
        if (!braces.value()) return "";
        const auto name = braces.value()->name;
        if (name == user_braces) return "{user} is the effective user and cannot be captured; write another name";
        if (std::find(names.begin(), names.begin() + count, name) != names.begin() + count)
            return fmt::format("{{{}}} is in it twice; write another name", name);
        if (count == names.size()) return fmt::format("it has more than {} names in braces", most_captures);
        names[count++] = name;
    }
}

// What the system manager calls the units that have processes.
constexpr std::string_view slice = ".slice";
constexpr std::array<std::string_view, 6> unit_types{".service", ".scope", slice, ".socket", ".mount", ".swap"};

bool is_unit(std::string_view name) noexcept {
    return std::any_of(unit_types.begin(), unit_types.end(),
                       [name](std::string_view type) { return name.size() > type.size() && name.ends_with(type); });
}

}  // namespace

Result<void> check_cgroup_pattern(std::string_view pattern) {
    const auto wrong = [pattern](std::string_view why) { return no_pattern("cgroup", pattern, why); };
    if (!pattern.starts_with('/')) return wrong("it must begin with '/', as in \"/slurm/job_*\"");
    if (const auto problem = problem_of_text(pattern); !problem.empty()) return wrong(problem);
    if (const auto problem = problem_of_captures(pattern); !problem.empty()) return wrong(problem);
    for (auto rest = pattern.substr(1); pattern != "/"; rest.remove_prefix(rest.find('/') + 1)) {
        if (const auto problem = problem_of_element(rest.substr(0, rest.find('/'))); !problem.empty())
            return wrong(problem);
        if (rest.find('/') == rest.npos) break;
    }
    return {};
}

Result<void> check_unit_pattern(std::string_view pattern) {
    const auto wrong = [pattern](std::string_view why) { return no_pattern("unit", pattern, why); };
    if (const auto problem = problem_of_text(pattern); !problem.empty()) return wrong(problem);
    if (pattern.find_first_of("/{}") != pattern.npos)
        return wrong("a unit's name has no '/' and no braces; for a path, write cgroup");
    if (is_unit(pattern) || pattern.ends_with('*')) return {};
    return wrong("it must end in .service, .scope, .slice or another type of unit, or in *");
}

bool element_matches(std::string_view pattern, std::string_view element, Captures& captures) noexcept {
    return fits(pattern, element, captures, [](char p, char t) { return p == t; });
}

// As in an element, only the last "**" is ever widened. What stands behind it has a fixed number of elements.
bool cgroup_matches(std::string_view pattern, std::string_view path, Captures& captures) noexcept {
    std::string_view retry_pattern, retry_path;
    std::size_t retry_count = 0;
    captures.count = 0;
    if (!path.starts_with('/')) return false;
    for (;;) {
        auto pattern_rest = pattern, path_rest = path;
        const auto element = take_element(pattern_rest);
        if (element.empty()) return true;
        if (element == any_elements) {
            retry_pattern = pattern = pattern_rest;
            retry_path = path;
            retry_count = captures.count;
            if (pattern.empty()) return true;
            continue;
        }
        const auto part = take_element(path_rest);
        if (part.empty()) return false;
        if (element_matches(element, part, captures)) {
            pattern = pattern_rest, path = path_rest;
            continue;
        }
        if (retry_pattern.empty()) return false;
        take_element(retry_path);
        pattern = retry_pattern, path = retry_path;
        captures.count = retry_count;
    }
}

bool unit_matches(std::string_view pattern, std::string_view path) noexcept {
    Captures ignored;
    for (auto element = take_element(path); !element.empty(); element = take_element(path)) {
        const bool is_slice = element.ends_with(slice);
        if (is_slice == pattern.ends_with(slice) && element_matches(pattern, element, ignored)) return true;
        if (!is_slice) return false;
    }
    return false;
}

std::string_view take_element(std::string_view& path) noexcept {
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    const auto element = path.substr(0, path.find('/'));
    path.remove_prefix(element.size());
    return element;
}

std::string_view unit_of(std::string_view path) noexcept {
    auto element = take_element(path);
    while (element.ends_with(slice)) element = take_element(path);
    return is_unit(element) ? element : std::string_view();
}

bool reaches_into_users(std::string_view cgroup_pattern) noexcept {
    return reaches_below_manager(cgroup_pattern, true) || reaches_below_manager(cgroup_pattern, false);
}

}  // namespace rdmaquota
