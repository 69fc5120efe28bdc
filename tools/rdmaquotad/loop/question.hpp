// A question that a child process works on, so that neither the time it takes nor its mistakes are the daemon's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace rdmaquota {

class Question {
public:
    // Forks. The child runs `work`, whose result is the answer; what it prints is thrown away. The child is killed with
    // this object, together with whatever it has started, and with this process. Nobody waits for its end, since it may sleep in
    // the kernel.
    explicit Question(const std::function<std::string()>& work);
    Question(const Question&) = delete;
    ~Question();

    // Waits for the answer at most this long. nullopt: there is none yet. Empty when the child died of its work, or
    // there could be none.
    std::optional<std::string> answer(std::chrono::milliseconds wait);

private:
    pid_t pid_ = -1;
    int from_ = -1;  // -1 once the answer is whole
    std::string text_;
};

}  // namespace rdmaquota
