// Changes of single limits in the policy file that leave the rest of the file as its author wrote
// it: comments, order, spacing, line ends.
#pragma once

#include <string>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Returns `text` with the changes made; errors call the text `file`. The result was parsed again and differs in
// meaning by the changes only. A tenant that `text` does not name is added to it.
Result<std::string> edit_policy(const std::string& text, const std::string& file,
                                const std::vector<LimitChange>& changes);

// The same for the file `path`, which is replaced in one step and keeps its mode and owner. Refuses
// a change that a conf.d file beside it would override, and one that makes the policy wrong, such as a limit of a
// tenant below one that has processes.
Result<void> persist_policy(const std::string& path, const std::vector<LimitChange>& changes);

}  // namespace rdmaquota
