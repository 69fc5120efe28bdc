// What the doctor finds, one line each.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

enum class Level { ok, warning, problem };  // problem: something is, or may be, created uncounted

struct Finding {
    Level level;
    std::string subject;  // a word or two; not yet safe to print
    std::string text;     // not yet safe to print
};
using Findings = std::vector<Finding>;

// Of this node: libibverbs, providers, registration, shadow libraries, segments, policy, kernel. `directory` is that of
// the running policy. Loads libibverbs and all providers in child processes of its own.
Findings examine_node(const std::string& directory);

// Of one process: who owns each device that it has open, and the kernel's counts beside the ledger's.
Findings examine_process(int pid, const std::string& directory);

}  // namespace rdmaquota
