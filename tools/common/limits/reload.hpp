// How a policy file becomes the running policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/file/policy_file.hpp"
#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_lock.hpp"

namespace rdmaquota {

// The policy file that `reload` reads and `set --persist` changes unless another one is named.
std::string default_policy_file();

// read_policy, and that the compiled policy has room for it.
Result<Policy> load_policy(const std::string& path, Distrusted distrusted = Distrusted::refuse);

struct Reloaded {
    Mode mode;
    std::string ledger_moved_to;  // when the ledger could not be used and a new one was made; else empty
    std::vector<std::string> warnings;  // Policy::warnings
};

// Puts a whole policy in force, for the holder of the lock of node_policy_path(directory). Returns the path to which a
// ledger was moved that could not be used, or the empty string.
Result<std::string> publish_policy(const PolicyLock& lock, const std::string& directory, const Policy& policy);

// When the node may still lack what the policy names.
enum class When : std::uint8_t { now, at_boot };

// Puts `file` in force in a quota directory, which is made when it is not there, with a ledger. An
// error leaves the running policy as it was. A backstop's cgroup that there is not is one, but at boot a warning.
Result<Reloaded> reload_policy(const std::string& file, const std::string& directory, When when = When::now);

}  // namespace rdmaquota
