// Containers that are in a tenant because the runtime told so: by its device (CDI) and the hook that comes with it.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Whether containers can be in the tenant: one that the policy has by this name, no template and without tenants below it.
Result<void> check_for_container(const Policy& policy, std::string_view name);

// The cgroup of the container that an OCI runtime's state is of, the JSON that it gives its hooks, as the node names it.
// The error says what is wrong with the state, or that the container has no cgroup of its own: none but "/", or that of
// this process.
Result<std::string> container_cgroup(std::string_view state, const std::string& proc = "/proc");

// A cgroup as a match: a path that no pattern's characters are in.
Result<void> check_container_cgroup(std::string_view cgroup);

// Whether matches of containers are there whose cgroup is gone; and those out of the policy, true when there were any.
bool has_ended_bindings(const Policy& policy);
bool erase_ended_bindings(Policy& policy);

}  // namespace rdmaquota
