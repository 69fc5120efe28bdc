// Patterns for cgroup paths and unit names, in `match` entries of the policy.
//
// A path pattern is an absolute path. Within an element '*' stands for any characters, also none; an element "**"
// stands for any number of elements, also none; "{NAME}" stands for one or more characters of an element and captures
// them. A pattern matches a path or any path below it: "/slurm/job_*" matches "/slurm/job_7/step_0".
//
// Nothing here allocates, except the errors of the checks. Matching takes a time that is bounded by the product of the
// two lengths, whatever the pattern.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "policy/result.hpp"

namespace rdmaquota {

inline constexpr std::size_t longest_pattern = 255;  // bytes
inline constexpr std::size_t most_captures = 8;      // in one pattern

struct Captures {
    struct Capture {
        std::string_view name, value;  // parts of the pattern and of the path
    };
    std::array<Capture, most_captures> list{};
    std::size_t count = 0;
};

Result<void> check_cgroup_pattern(std::string_view pattern);
Result<void> check_unit_pattern(std::string_view pattern);  // no '/', no braces

// Whether one element of a path fits one of a pattern (not "**"); on true what it captures is appended.
bool element_matches(std::string_view pattern, std::string_view element, Captures& captures) noexcept;

// With '*' and '**' the first match from the left counts, each wildcard taking as little as possible. On true
// `captures` has the values of all names in the pattern.
bool cgroup_matches(std::string_view pattern, std::string_view path, Captures& captures) noexcept;

// The unit of the system manager that a process is in, by its path in the cgroup hierarchy: the slices from the left
// on, then the first element that is no slice. What is below that, users may make (delegation). A pattern that ends in
// ".slice" is tried with each of these slices, any other one with the unit.
bool unit_matches(std::string_view pattern, std::string_view path) noexcept;

// Removes the first element of an absolute path and the slash before it; empty at the end.
std::string_view take_element(std::string_view& path) noexcept;

// The unit that a path begins with, below its slices, such as "nfsd.service"; empty where there is none.
std::string_view unit_of(std::string_view path) noexcept;

// Whether a pattern can match cgroups that ordinary users make, below a user's manager ("user@1000.service"), and so
// lets them choose. A pattern that has a user's whole slice ("/user.slice", "/") leaves no choice.
bool reaches_into_users(std::string_view cgroup_pattern) noexcept;

}  // namespace rdmaquota
