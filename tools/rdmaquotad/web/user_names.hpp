// Names of users for the page, by a child process: a directory service may take long to answer, and a ledger may name any number
// of users. Their number is bounded. One thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "tools/rdmaquotad/loop/question.hpp"

namespace rdmaquota {

class UserNames {
public:
    static constexpr std::size_t most = 4096;

    // The user's name. The number where the user has no name, and until a child has found it: a call waits 50 ms for that at most.
    std::string of(uid_t user);

private:
    using Clock = std::chrono::steady_clock;
    void take_answer(std::chrono::milliseconds wait);
    bool ask();

    std::map<uid_t, std::string> names_;
    std::set<uid_t> wanted_;  // not known yet
    std::optional<Question> question_;
    Clock::time_point asked_{}, next_{};
};

}  // namespace rdmaquota
