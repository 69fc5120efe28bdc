// Runs a program as if it had been started directly: its terminal, its signals, its exit status.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct ChildEnd {
    int status = 0;                 // exit status, when it was not killed
    int signal = 0;                 // the signal that killed it, or 0
    int exec_error = 0;             // errno when it could not be started
    bool descendants_live = false;  // what it left running in the background
};

// Searches PATH. To be called before there are threads.
Result<ChildEnd> run_child(const std::vector<std::string>& program);

// Ends this process by `signal`, so that shells see what they would have seen without us.
[[noreturn]] void die_by(int signal);

}  // namespace rdmaquota
