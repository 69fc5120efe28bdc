// What `rdmaquota show --history` prints.
#pragma once

#include <string>

namespace rdmaquota {

// Asks the sidecar; of the tenant and those below it, or of all for the empty name. Returns the exit status.
int history(const std::string& directory, const std::string& tenant, bool json);

}  // namespace rdmaquota
