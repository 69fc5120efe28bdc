// Tenants: names in a tree, such as "physics/atlas", and which processes are in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

// The tenant of every process that no match puts into another one.
inline constexpr std::string_view default_tenant = "default";
// The root of the tree: all tenants together. No tenant has this name.
inline constexpr std::string_view node_tenant = "node";

inline constexpr std::size_t tenant_name_bytes = 128;  // with the final NUL

inline constexpr std::uint32_t default_weight = 100, most_weight = 10'000;
inline constexpr std::uint32_t default_grace_s = 7 * 24 * 3600;

// Elements of letters, digits and any of _ . : @ - \\ with '/' between them; none begins with '.' or '-'. The error
// says what is wrong. "node" is refused, and so is what would lie below it or below "default".
Result<void> check_tenant_name(std::string_view name);
// The same, where an element may also contain "{user}" or another "{NAME}", and at least one does. NAME is of
// lower-case letters, digits and '_'. {user} is a whole element, and there is at most one.
Result<void> check_template_name(std::string_view name);

// Whether a valid name is a template's: it stands for one tenant for each value of what is in braces.
constexpr bool is_template(std::string_view name) noexcept { return name.find('{') != name.npos; }

// Whether `tenant`, a name or an instance's key, is what the template `of` stands for with some value for each of its
// braces: "user/#1000" and "user/{user}". A name without braces is an instance of itself only.
bool is_instance(std::string_view tenant, std::string_view of) noexcept;

// "physics" for "physics/atlas"; node_tenant for "physics".
std::string_view parent_of(std::string_view tenant) noexcept;

// Whether it is one of those below `above`, at any depth; all but the node are below node_tenant. Both are names, or both keys.
bool is_below(std::string_view tenant, std::string_view above) noexcept;

// Instances of a template lie under their user's number, "user/#1000", since user names can change, and the
// provider must not ask for them. Such a key is no valid name and is never written by people.
std::string user_element(std::uint32_t uid);

// One entry of a tenant's `match` list. All that is not empty must hold; an entry with nothing (`user = "*"`) holds for every
// process.
struct Match {
    std::string user;                  // a name or number: the effective user id
    std::string group;                 // a name or number: the effective group id, or one of the supplementary ones
    std::string cgroup;                // a pattern for the path in the cgroup hierarchy, see policy/pattern.hpp
    std::string unit;                  // a pattern for the name of a unit of the system manager
    std::vector<std::string> members;  // who may charge, where user and group do not say: "alice", "@hpc", "*"
    bool bound = false;                // a container's cgroup (`rdmaquota tenant bind`): in no file, tried before all others

    bool operator==(const Match&) const = default;
};

}  // namespace rdmaquota
