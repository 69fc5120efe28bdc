#include "provider/charging/accounts.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "provider/charging/denial.hpp"
#include "provider/charging/opening.hpp"
#include "provider/host/environment.hpp"
#include "provider/host/log_target.hpp"
#include "provider/host/process.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

struct Shared {
    Account* account;
    unsigned contexts;
};

// Made on first use and never destroyed: other threads may still run when the process exits.
struct State {
    std::mutex mutex;
    std::vector<Shared> open;
    ProcessId process;  // whose accounts they are
    bool said_unavailable = false;
    std::set<std::string> said;                                       // notes about tenants
    std::vector<std::string> warnings = environment().warnings;  // said once the mutex is free
    std::vector<std::string> news;                               // likewise, at the level info
};

State& state() noexcept {
    static auto* const instance = new State;
    return *instance;
}

void warn_unavailable(const std::string& why, bool denied) {
    if (std::exchange(state().said_unavailable, true)) return;
    state().warnings.push_back(
        fmt::format("{}; until then, on devices that are opened now, {}", why,
                    denied ? "every object is denied (on_unavailable = deny)" : "its limits do not hold"));
}

void warn_once(const std::string& note) {
    if (!note.empty() && state().said.insert(note).second) state().warnings.push_back(note);
}

// Warns when it cannot be used; the error is only that.
Result<Account*> open_account(const Place& place, Accounts& accounts) {
    auto limits = LimitsSegment::open(limits_path(place.here));
    if (!limits) {
        warn_unavailable(limits.error(), false);
        return Error{limits.error()};
    }
    follow_log_settings(place.directory, *limits);
    const bool deny = limits->denies_uncounted();
    const int deny_errno = limits->deny_errno();
    auto account = Account::open(place, std::move(*limits));
    if (account) return account;
    warn_unavailable(account.error(), deny);
    if (deny) {
        accounts.denied = true;
        accounts.deny_errno = deny_errno;
    }
    return account;
}

void join(const std::string& directory, Accounts& accounts) {
    const auto place = find_place(directory);
    if (!place) return warn_unavailable(place.error(), false);
    warn_once(place->note);
    auto& open = state().open;
    auto shared = std::find_if(open.begin(), open.end(),
                               [&](const Shared& entry) { return entry.account->is_at(*place); });
    if (shared == open.end()) {
        const auto account = open_account(*place, accounts);
        if (!account) return;
        if (says(LogLevel::info)) state().news.push_back(activity_line(**account, place->rule));
        shared = open.insert(open.end(), {*account, 0});
    }
    ++shared->contexts;
    accounts.account[accounts.count++] = shared->account;
}

}  // namespace

Accounts join_accounts() {
    auto& shared = state();
    std::unique_lock lock(shared.mutex);
    if (shared.process != this_process()) {
        shared.process = this_process();
        shared.open.clear();
    }
    Accounts accounts;
    for (const auto& directory : quota_directories()) join(directory, accounts);
    const auto warnings = std::exchange(shared.warnings, {});
    const auto news = std::exchange(shared.news, {});
    lock.unlock();
    for (const auto& warning : warnings) say(LogLevel::warning, warning);
    for (const auto& line : news) say(LogLevel::info, line);
    return accounts;
}

void leave_accounts(const Accounts& accounts) noexcept {
    auto& shared = state();
    std::unique_lock lock(shared.mutex);
    if (shared.process != this_process()) return;
    bool last = false;
    for (std::size_t i = 0; i < accounts.count; ++i) {
        const auto entry = std::find_if(shared.open.begin(), shared.open.end(), [&](const Shared& other) {
            return other.account == accounts.account[i];
        });
        if (entry == shared.open.end() || --entry->contexts > 0) continue;
        entry->account->retire();
        delete entry->account;
        shared.open.erase(entry);
        last = shared.open.empty();
    }
    lock.unlock();
    if (last) report_suppressed();
}

std::mutex& accounts_mutex() noexcept { return state().mutex; }

}  // namespace rdmaquota::provider
