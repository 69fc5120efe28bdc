// Where a limit stands in a policy file.
#pragma once

#include <string>
#include <string_view>

#include "policy/file/toml.hpp"
#include "policy/limit_key.hpp"

namespace rdmaquota {

// tenant.physics, tenant."physics/atlas"
std::string tenant_header(std::string_view tenant);

// The header of its table: [tenant."physics/atlas".process."*"], [process."*"], [node."*"].
std::string header_of(const LimitKey& key);

// That table, in whichever form it is written; nullptr: there is none.
const toml::table* find_table(const toml::table& root, const LimitKey& key);

}  // namespace rdmaquota
