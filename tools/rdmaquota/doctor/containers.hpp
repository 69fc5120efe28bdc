#pragma once

#include <string>
#include <vector>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// Whether the CDI specifications in these directories that are ours still fit the node. Finds nothing where there are
// none.
void examine_containers(Findings& findings, const std::vector<std::string>& directories = {"/etc/cdi", "/var/run/cdi"});

}  // namespace rdmaquota
