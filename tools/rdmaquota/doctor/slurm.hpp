#pragma once

#include <string>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// Whether Slurm jobs get tenants on this node. Finds nothing where neither Slurm nor a policy for it is there.
void examine_slurm(Findings& findings, const std::string& directory);

// "proctrack/linuxproc", as slurm.conf has it; empty where it says nothing.
std::string process_tracking(const std::string& slurm_conf);

}  // namespace rdmaquota
