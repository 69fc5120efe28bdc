#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"

namespace rdmaquota {

// What `rdmaquota cdi TENANT` would write now; null where only root sees it.
using SpecificationOf = std::function<Result<Json>(const std::string& tenant)>;

// Whether the CDI specifications in these directories that are ours still fit the node. Finds nothing where there are
// none.
void examine_containers(Findings& findings, const SpecificationOf& specification_of,
                        const std::vector<std::string>& directories = {"/etc/cdi", "/var/run/cdi"});

}  // namespace rdmaquota
