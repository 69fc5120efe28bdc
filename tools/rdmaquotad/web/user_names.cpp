#include "tools/rdmaquotad/web/user_names.hpp"

#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "tools/common/tenants/names.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto first_wait = 50ms;  // a local answer is there by then
constexpr auto between = 200ms;    // questions, since a ledger may name any number of users
constexpr auto patience = 10s;     // with the child
constexpr auto rest = 60s;         // when it has not answered
constexpr std::size_t at_once = 256;

std::string names_of(const std::set<uid_t>& users) {
    std::string lines;
    for (const auto user : users) lines += fmt::format("{} {}\n", user, user_name(user));
    return lines;
}

}  // namespace

std::string UserNames::of(uid_t user) {
    take_answer(0ms);
    if (const auto found = names_.find(user); found != names_.end()) return found->second;
    if (wanted_.size() < most) wanted_.insert(user);
    if (ask()) {
        take_answer(first_wait);
        if (const auto found = names_.find(user); found != names_.end()) return found->second;
    }
    return fmt::format_int(user).str();
}

void UserNames::take_answer(std::chrono::milliseconds wait) {
    if (!question_) return;
    const auto answer = question_->answer(wait);
    if (!answer && Clock::now() - asked_ < patience) return;
    if (!answer) next_ = Clock::now() + rest;
    question_.reset();
    if (names_.size() >= most) names_.clear();
    std::istringstream lines(answer.value_or(""));
    for (std::string line; std::getline(lines, line);) {
        const auto user = static_cast<uid_t>(std::strtoul(line.c_str(), nullptr, 10));
        names_[user] = line.substr(line.find(' ') + 1);
        wanted_.erase(user);
    }
}

// Whether a child begins to look.
bool UserNames::ask() {
    if (question_ || wanted_.empty() || Clock::now() < next_) return false;
    std::set<uid_t> some;
    for (auto user = wanted_.begin(); user != wanted_.end() && some.size() < at_once; ++user) some.insert(*user);
    asked_ = Clock::now();
    next_ = asked_ + between;
    question_.emplace([some] { return names_of(some); });
    return true;
}

}  // namespace rdmaquota
