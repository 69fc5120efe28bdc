// Users and groups of the policy that were not known when it was put in force: tries them again, and compiles the policy
// anew once there is one. Directory services can be late at boot, and slow; so a child process asks them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/loop/question.hpp"

namespace rdmaquota {

class UnknownNames {
public:
    static constexpr std::chrono::seconds between_tries{30};

    explicit UnknownNames(Node& node) : node_(node) {}

    // Call it every second or so; does not wait. The names that are known since and count from now on; an error when the
    // policy could not be put in force with them.
    Result<std::vector<std::string>> try_again();

private:
    using Clock = std::chrono::steady_clock;

    Node& node_;
    std::optional<Question> question_;
    Clock::time_point asked_;
};

}  // namespace rdmaquota
