// The units: what is in force after the next boot, and whether the sidecar runs.
#pragma once

#include <string>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// Says nothing of a unit that is not installed, of a node without systemd, and of another quota directory than the node's.
// `root` is where the node's files are.
void examine_units(Findings& findings, const std::string& directory, const std::string& root = "");

}  // namespace rdmaquota
