#pragma once

#include <string>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

void examine_guard(Findings& findings, const std::string& directory);

}  // namespace rdmaquota
