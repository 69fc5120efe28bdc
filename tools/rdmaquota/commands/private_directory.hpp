// A quota directory of one's own, for one tree of processes.
#pragma once

#include <string>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Makes a directory that only this user can enter, below XDG_RUNTIME_DIR where that can be used,
// else below /tmp, with a ledger and `policy` in it. Leaves nothing behind when it fails.
Result<std::string> make_private_directory(const Policy& policy);

// Whether a living process is still entered in the directory's ledger.
bool has_owners(const std::string& directory);

void remove_private_directory(const std::string& directory);

}  // namespace rdmaquota
