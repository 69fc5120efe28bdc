// What `rdmaquota doctor` finds on this node. It runs in a child process while someone asks, once in five minutes at
// most.
//
// One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/question.hpp"

namespace rdmaquota {

class DoctorFindings {
public:
    explicit DoctorFindings(std::string directory) : directory_(std::move(directory)) {}

    // Of the last examination: an array of objects with level, subject and text. Null before the first has ended, and
    // where there is no such command. Does not wait.
    const Json& all();

private:
    using Clock = std::chrono::steady_clock;
    void begin();
    void take();

    std::string directory_;
    std::optional<Question> question_;
    std::optional<Clock::time_point> begun_;
    Json findings_;
};

}  // namespace rdmaquota
