// Names of users for the page, by a child process: a directory service may take long to answer, and a ledger may name any number
// of users. Their number is bounded. One thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "tools/rdmaquotad/dynamic/question.hpp"

namespace rdmaquota {

class UserNames {
public:
    static constexpr std::size_t most = 4096;

    // The user's name; the number where there is no such user, and where a child has not found it within 50 ms, which a later call
    // sees.
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
