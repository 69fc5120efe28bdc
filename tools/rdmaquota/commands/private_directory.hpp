// A quota directory for one run of `rdmaquota run`.
#pragma once

#include <string>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Makes a directory with a ledger and `limits` that only this user can enter, in XDG_RUNTIME_DIR where that can be
// used, else in /tmp. Leaves nothing behind when it fails.
Result<std::string> make_private_directory(const TenantLimits& limits);

// Whether a living process has a slot in the directory's ledger.
bool has_owners(const std::string& directory);

void remove_private_directory(const std::string& directory);

}  // namespace rdmaquota
