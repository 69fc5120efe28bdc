// Runs a program as if it had been started directly: its terminal, its signals, its exit status.
#pragma once

#include <functional>
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

// What is done while the program runs.
struct Watch {
    int descriptor;             // readable when there is something to look at; -1: never
    std::function<int()> look;  // returns after how many milliseconds to call it again at the latest; -1: when there is something
};

// Searches PATH, and returns when the program has ended. Call it before starting any thread.
Result<ChildEnd> run_child(const std::vector<std::string>& program, const Watch& watch = {-1, nullptr});

// Ends this process by `signal`, so that the shell sees what it would have seen without us.
[[noreturn]] void die_by(int signal);

}  // namespace rdmaquota
