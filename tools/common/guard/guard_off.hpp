// That somebody took the guard out of the kernel holds until the policy is put in force, or a sidecar starts: also when the policy
// in force changes meanwhile, as by each transient tenant. A file in the quota directory says so, which the sidecar writes.
#pragma once

#include <string>

namespace rdmaquota {

inline std::string guard_off_path(const std::string& directory) { return directory + "/guard-off"; }

}  // namespace rdmaquota
