// The CDI specification by which a container is in a tenant: what `rdmaquota cdi` writes, and the doctor compares with.
#pragma once

#include <string>

#include "policy/result.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {

inline constexpr const char* container_device_kind = "rdmaquota.io/tenant";

// With one device. Its hook is the program that calls this; the provider's files are those of its build tree, or the installed ones.
// The error says what is missing, or why no container can be in the tenant.
Result<Json> container_specification(const std::string& tenant, const std::string& quota_directory);

}  // namespace rdmaquota
