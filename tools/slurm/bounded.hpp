// Runs a program that must not hold up Slurm.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

struct Ended {
    int status = -1;     // the exit status; -1: it did not run, was killed, or took too long
    std::string output;  // both streams, at most 64 KiB; what went wrong where it is -1
};

// `arguments` begins with the program's path. It gets this process's environment, and `path` as PATH. Kills it after
// `seconds`.
Ended run_bounded(const std::vector<std::string>& arguments, const std::string& path, int seconds);

}  // namespace rdmaquota
