#include "provider/charging/accounts.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "provider/host/environment.hpp"
#include "provider/host/log_target.hpp"
#include "provider/host/process.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

// Made on first use and never destroyed: other threads may still run when the process exits.
struct State {
    std::mutex mutex;
    Accounts current;
    ProcessId process;  // whose accounts they are
    unsigned contexts = 0;
    bool complete = false;  // every account that should be there is
    bool said_unavailable = false;
    std::vector<std::string> warnings = environment().warnings;  // said once the mutex is free
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

bool has_account(const Accounts& accounts, const std::string& directory) {
    return std::any_of(accounts.account.begin(), accounts.account.begin() + accounts.count,
                       [&](const Account* account) { return account->directory() == directory; });
}

bool is_lost(const Account* account) noexcept { return account && account->ledger().lost(); }

bool any_lost(const Accounts& accounts) noexcept {
    return std::any_of(accounts.account.begin(), accounts.account.end(), is_lost);
}

// The contexts that use a lost account keep it.
void forget_lost(Accounts& accounts) noexcept {
    const auto end = std::remove_if(accounts.account.begin(), accounts.account.begin() + accounts.count, is_lost);
    std::fill(end, accounts.account.end(), nullptr);
    accounts.count = static_cast<std::size_t>(end - accounts.account.begin());
}

// False, with a warning, when the account cannot be used.
bool open_account(Accounts& accounts, const std::string& directory) {
    auto policy = PolicySegment::open(policy_path(directory));
    if (!policy) {
        warn_unavailable(policy.error(), false);
        return false;
    }
    follow_log_settings(directory, *policy);
    const bool deny = policy->denies_uncounted();
    const int deny_errno = policy->deny_errno();
    const auto account = Account::open(directory, std::move(*policy));
    if (account) {
        accounts.account[accounts.count++] = *account;
        return true;
    }
    warn_unavailable(account.error(), deny);
    if (deny) {
        accounts.denied = true;
        accounts.deny_errno = deny_errno;
    }
    return false;
}

// Opens those that are not open yet; true when all are.
bool open_accounts(Accounts& accounts) {
    bool complete = true;
    forget_lost(accounts);
    accounts.denied = false;
    for (const auto& directory : quota_directories())
        if (!has_account(accounts, directory) && !open_account(accounts, directory)) complete = false;
    return complete;
}

}  // namespace

Accounts join_accounts() {
    auto& shared = state();
    std::unique_lock lock(shared.mutex);
    if (shared.process != this_process()) {
        shared.process = this_process();
        shared.contexts = 0;
        shared.current = {};
        shared.complete = false;
    }
    if (shared.contexts == 0 || !shared.complete || any_lost(shared.current))
        shared.complete = open_accounts(shared.current);
    ++shared.contexts;
    const auto accounts = shared.current;
    const auto warnings = std::exchange(shared.warnings, {});
    lock.unlock();
    for (const auto& warning : warnings) say(LogLevel::warning, warning);
    return accounts;
}

void leave_accounts() noexcept {
    auto& shared = state();
    const std::lock_guard lock(shared.mutex);
    if (shared.process != this_process() || shared.contexts == 0 || --shared.contexts > 0) return;
    for (std::size_t i = 0; i < shared.current.count; ++i) {
        shared.current.account[i]->retire();
        delete shared.current.account[i];
    }
    shared.current = {};
}

std::mutex& accounts_mutex() noexcept { return state().mutex; }

}  // namespace rdmaquota::provider
