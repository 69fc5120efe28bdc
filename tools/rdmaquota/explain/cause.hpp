// Why a creation failed: what is known of it, as causes with what helps.
#pragma once

#include <string>
#include <vector>

#include "tools/common/views/json.hpp"

namespace rdmaquota {

struct Cause {
    std::string kind;   // a word or two: "quota", "share", "memory lock"; safe to print, as the next two
    std::string text;   // what is so
    std::string helps;  // empty where nothing is known to
};
using Causes = std::vector<Cause>;

// Of one event, as `rdmaquota events --json` has it; nothing for one that denied nothing to anybody.
Causes causes_of(const Json& event, const std::string& directory);

// What stands in the way of the process `pid` at this moment, whether or not it has met it.
Causes causes_now(int pid, const std::string& directory);

}  // namespace rdmaquota
