// Changes of single limits in the policy file that leave the rest of the file as its author wrote
// it: comments, order, spacing, line ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/policy.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// Returns `text` with the changes made; a change to `unset` removes the limit. Errors call the text `file`. The result was
// parsed again and differs in meaning by the changes only. A tenant that `text` does not name is added to it.
Result<std::string> edit_policy(const std::string& text, const std::string& file,
                                const std::vector<LimitChange>& changes);

// The same for a policy file, in two steps, so that something else can happen between them. The caller excludes other
// writers from `prepare` until `put_in_place`. Move-only; the new text is deleted unless it was put in place.
class PolicyEdit {
public:
    // Reads and edits the file `path`, and writes the new text beside it. Refuses a change that a conf.d file beside it
    // would override, and one that makes the policy wrong, such as a limit of a tenant below one that has processes.
    static Result<PolicyEdit> prepare(const std::string& path, const std::vector<LimitChange>& changes);
    // Replaces the file in one step; the new one has the old one's mode and owner.
    Result<void> put_in_place();
    // What the file and those in conf.d say then.
    const Policy& policy() const noexcept { return policy_; }

    PolicyEdit(PolicyEdit&&) noexcept;
    PolicyEdit& operator=(PolicyEdit&&) noexcept;
    ~PolicyEdit();

private:
    class Replacement;
    PolicyEdit(std::unique_ptr<Replacement> replacement, Policy policy);
    std::unique_ptr<Replacement> replacement_;
    Policy policy_;
};

// Both steps at once.
Result<void> persist_policy(const std::string& path, const std::vector<LimitChange>& changes);

// The file itself where `path` is a link to it.
std::string linked_file(const std::string& path);

}  // namespace rdmaquota
