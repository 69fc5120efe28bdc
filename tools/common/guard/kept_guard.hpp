// The guard that the kernel keeps while no sidecar leads it: whose it is, and its limits (guard_pins.hpp).
#pragma once

#include <string>

#include "policy/result.hpp"
#include "tools/common/guard/kernel_counts.h"

namespace rdmaquota {

// Row 0 is nobody's: its `process` says which quota directory's limits the others have, by this.
u64 directory_mark(const std::string& directory);

// Gives the guard the limits that the directory's tenants have now, where the guard is that directory's and in this version's
// form. Tenants that are new get rows, and the cgroups that are bound to them are known, unless a sidecar runs and does not
// answer: its rows are its own. Fails where tenants find no room; without the rights for BPF.
Result<void> lead_kept_guard(const std::string& directory);

// For who has made a tenant for processes that begin soon: returns when the guard knows of it, or after a second. By the sidecar,
// else by lead_kept_guard().
void tell_guard(const std::string& directory);

}  // namespace rdmaquota
