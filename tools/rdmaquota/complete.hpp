// What can come next on a command line: the shells' completion scripts ask
// `rdmaquota __complete WORD...` and get one candidate per line.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace rdmaquota {

// `words` are those after "rdmaquota" up to the cursor; the last one is being typed, or empty.
int complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace rdmaquota
