// What the provider asks the sidecar, rdmaquotad, which knows by the kernel's word who asks.
#pragma once

#include <string>

namespace rdmaquota::provider {

// Asks it to make the tenant that this process belongs to. Waits for its answer, two seconds at most; returns at once
// where none runs. What came of it is to be seen in
// the directory. Opens a socket for that time. Keeps errno.
void ask_for_tenant(const std::string& directory) noexcept;

// Asks it to divide anew what the tenants above `tenant` may use, and waits for the answer, `patience_ms` at most.
void ask_for_grant(const std::string& directory, const std::string& tenant, int patience_ms) noexcept;

}  // namespace rdmaquota::provider
