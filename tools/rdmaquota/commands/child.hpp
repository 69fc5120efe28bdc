// Runs a program as if it had been started directly: its terminal, its signals, its exit status.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct ChildEnd {
    int status = 0;                 // exit status, unless it was killed
    int signal = 0;                 // the signal that killed it, or 0
    int exec_error = 0;             // errno when it could not be started
    bool descendants_live = false;  // it left processes in the background
};

// Searches PATH, and returns when the program has ended. Call it before starting any thread.
Result<ChildEnd> run_child(const std::vector<std::string>& program);

// Ends this process by `signal`, so that the shell sees what it would have seen without us.
[[noreturn]] void die_by(int signal);

}  // namespace rdmaquota
