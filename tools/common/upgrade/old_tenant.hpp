// Programs that run with the rdmaquota before tenants, as a tenant of their own, for people.
#pragma once

#include <optional>
#include <string>

#include "tools/common/snapshot.hpp"

namespace rdmaquota {

inline constexpr std::string_view old_tenant_name = "default (older rdmaquota)";

// What they use and may use; nothing where there is none. Changes nothing.
std::optional<TenantView> read_old_tenant(const std::string& directory);

}  // namespace rdmaquota
