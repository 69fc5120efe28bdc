// What a policy says that does not fit this node.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace rdmaquota {

// Users, groups, cgroups, devices and ports that the policy names and this node lacks, and a log file to which ordinary users
// cannot append. What check, reload and doctor warn of alike.
std::vector<std::string> warnings_of_node(const Policy& policy);

// The backstop's cgroup, when there is none of that name; else empty.
std::string missing_backstop(const Policy& policy);

// "device rxe0 has no port 9" for "rxe0/9"; empty where it has, and where the device is not here.
std::string missing_port(const std::string& device);

}  // namespace rdmaquota
