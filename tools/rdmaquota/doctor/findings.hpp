// The doctor's findings, one line each.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

enum class Level { ok, warning, problem };  // problem: objects are, or may be, created uncounted

struct Finding {
    Level level;
    std::string subject;  // a word or two; not yet safe to print
    std::string text;     // not yet safe to print
};
using Findings = std::vector<Finding>;

// Examines this node: libibverbs, providers, registration, shadow libraries, segments, policy, kernel. `directory` is
// the running policy's. Loads libibverbs and all providers in child processes.
Findings examine_node(const std::string& directory);

// Examines one process: who opened each device that it has open, and the kernel's counts beside the ledger's. The
// process may be hostile; time and memory that this takes are bounded.
Findings examine_process(int pid, const std::string& directory);

}  // namespace rdmaquota
