// Changes of single limits in the policy file that leave the rest of the file as its author wrote
// it: comments, order, spacing, line ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

struct LimitChange {
    Scope scope;
    std::string device;
    Resource resource;
    std::uint64_t limit;
};

// Returns `text` with the changes made; errors call the text `file`. The result was parsed again and differs in
// meaning by the changes only.
Result<std::string> edit_policy(const std::string& text, const std::string& file,
                                const std::vector<LimitChange>& changes);

// The same for the file `path`, which is replaced in one step and keeps its mode and owner. Refuses
// a change that a conf.d file beside it would override.
Result<void> persist_policy(const std::string& path, const std::vector<LimitChange>& changes);

}  // namespace rdmaquota
