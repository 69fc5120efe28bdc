// Programs that are hardened: their mounts may hide the quota directory or show it read-only, and SELinux or AppArmor
// may refuse it. What is not charged then, and what helps.
#pragma once

#include <string>

#include <sys/types.h>

#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// The node: the second place of the quota directory, SELinux, and the processes that the sidecar sees without a slot.
// Says nothing of another quota directory than the node's. `root` is where the node's files are.
void examine_hardening(Findings& findings, const std::string& directory, const std::string& root = "");

// Why the process can write no ledger of its tenant, and what helps; finds nothing where it can. Waits for a file
// system that answers slowly in the process's mounts, for two seconds at most. Needs root.
void examine_reach(Findings& findings, pid_t pid, const std::string& directory);

// What to type so that a unit's processes can write the quota directory; empty for a name that is no service's.
std::string drop_in_for(std::string_view unit);

}  // namespace rdmaquota
