// Who opens a device, in the guard's words (struct guard_who).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "policy/policy.hpp"
#include "tools/common/guard/kernel_counts.h"

namespace rdmaquota {

u64 cgroup_id(const std::string& path);  // 0: there is none
// The cgroups that are bound to tenants, with the tenant's name.
std::vector<std::pair<u64, std::string>> bound_cgroups(const Policy& policy);

}  // namespace rdmaquota
