// Tries something in a child process, such as loading a library, that must not happen in this one.
#pragma once

#include <functional>
#include <string>

#include <sys/types.h>

namespace rdmaquota {

class Probe {
public:
    // Forks. The child runs `work`; the answer is what was written to standard error meanwhile, followed by what `work`
    // returned. The child then stays, so that it can be examined, until this is destroyed.
    explicit Probe(const std::function<std::string()>& work);
    Probe(const Probe&) = delete;
    ~Probe();

    pid_t pid() const noexcept { return pid_; }                     // -1 when fork failed
    const std::string& answer() const noexcept { return answer_; }  // empty when the child died

private:
    pid_t pid_ = -1;
    std::string answer_;
};

}  // namespace rdmaquota
