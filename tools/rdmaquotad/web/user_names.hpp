// Names of users, remembered: the page shows the same ones every second, and a directory service may take long. Their number
// is bounded, since a ledger may have any. One thread.
#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "tools/common/names.hpp"

namespace rdmaquota {

class UserNames {
public:
    static constexpr std::size_t most = 4096;

    const std::string& of(uid_t user) {
        if (names_.size() > most) names_.clear();
        const auto [found, added] = names_.try_emplace(user);
        if (added) found->second = user_name(user);
        return found->second;
    }

private:
    std::map<uid_t, std::string> names_;
};

}  // namespace rdmaquota
