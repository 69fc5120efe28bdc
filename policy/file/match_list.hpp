// The `match` list of a tenant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/file/table_reader.hpp"

namespace rdmaquota {

struct MatchList {
    std::vector<Match> entries;
    std::vector<std::string> locations;  // of each entry, "FILE:LINE:COL: "
};

// Reads the list of the tenant or template `tenant`, a valid name. Errors go to the reader; `warnings` gets what is
// accepted and probably not meant.
MatchList read_matches(TableReader& reader, const toml::node& node, std::string_view tenant,
                       std::vector<std::string>& warnings);

}  // namespace rdmaquota
