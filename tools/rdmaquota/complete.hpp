// Shell completion: the scripts in completions/ ask `rdmaquota __complete WORD...` and get one candidate per line.
#pragma once

#include <string>
#include <vector>

#include "tools/common/command_line.hpp"

namespace rdmaquota {

// `words` are those between "rdmaquota" and the cursor; the last one is being typed and may be empty.
int complete(const CommandLine& line, const std::vector<std::string>& words);

}  // namespace rdmaquota
