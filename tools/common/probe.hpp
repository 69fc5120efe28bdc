// A child process in which something is tried, such as loading a library, that must not happen in this one.
#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

namespace rdmaquota {

class Probe {
public:
    // Forks. The child runs `work`, and what `work` returns, after what was written to standard error meanwhile, is
    // the answer. The child then stays, to be looked at, until this is destroyed.
    explicit Probe(const std::function<std::string()>& work);
    Probe(const Probe&) = delete;
    ~Probe();

    pid_t pid() const noexcept { return pid_; }                     // -1: there could be none
    const std::string& answer() const noexcept { return answer_; }  // empty also when the child died of `work`

private:
    pid_t pid_ = -1;
    std::string answer_;
};

}  // namespace rdmaquota
