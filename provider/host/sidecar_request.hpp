// Asks the sidecar, rdmaquotad, to make the tenant that this process belongs to. It knows by the kernel's word who asks.
#pragma once

#include <string>

namespace rdmaquota::provider {

// Waits for its answer, two seconds at most; returns at once where none runs. What came of it is to be seen in
// the directory. Opens a socket for that time. Keeps errno.
void ask_for_tenant(const std::string& directory) noexcept;

}  // namespace rdmaquota::provider
