// Which tenant above bounds a tenant's share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/resource.hpp"

namespace rdmaquota {

struct ShareBound {
    std::string tenant;
    std::uint64_t limit;
};

// Of the tenants above `tenant`, and the node, the one whose limit has the least left after the shares below it; the
// nearest of equals. Nothing where none has a limit. `row` is a device or "total". Opens the limits of all tenants;
// those that this process may not read are left out.
std::optional<ShareBound> share_bound(const std::string& directory, const std::string& tenant, std::string_view row,
                                      Resource resource);

}  // namespace rdmaquota
