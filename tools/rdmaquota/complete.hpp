// Shell completion: the scripts in completions/ ask `rdmaquota __complete WORD...` and get one candidate per line.
#pragma once

#include <string>
#include <vector>

#include "tools/common/command_line.hpp"

namespace rdmaquota {

// `words` are those between "rdmaquota" and the cursor; the last one is being typed and may be empty.
// Tenants are those of `directory`.
int complete(const CommandLine& line, const std::vector<std::string>& words, const std::string& directory);

}  // namespace rdmaquota
