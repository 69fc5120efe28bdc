#include "provider/charging/accounts.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/core.h>

#include "provider/charging/denial.hpp"
#include "provider/charging/opening.hpp"
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

// Why a quota directory cannot be used.
struct Failure {
    std::string why;
    bool out_of_reach = false;  // because of this process's mounts: another place of the same directory may be usable
    int deny_errno = 0;         // of a policy with on_unavailable = "deny"; else 0
};

[[gnu::noinline]] void report(const Failure& failure, Accounts& accounts) {
    if (failure.deny_errno != 0) {
        accounts.denied = true;
        accounts.deny_errno = failure.deny_errno;
    }
    if (std::exchange(state().said_unavailable, true)) return;
    state().warnings.push_back(fmt::format(
        "{}; until then, on devices that are opened now, {}", failure.why,
        failure.deny_errno != 0 ? "every object is denied (on_unavailable = deny)" : "its limits do not hold"));
}

void warn_once(const std::string& note) {
    if (!note.empty() && state().said.insert(note).second) state().warnings.push_back(note);
}

// Not inlined, as what else happens after a failure only: a program that opens a device may have a small stack.
[[gnu::noinline]] bool is_read_only(const std::string& path) noexcept {
    struct statvfs mounted {};
    return statvfs(path.c_str(), &mounted) == 0 && (mounted.f_flag & ST_RDONLY) != 0;
}

// Null on failure.
Account* open_account(const Place& place, Failure& failure) {
    auto limits = LimitsSegment::open(limits_path(place.here));
    if (!limits) {
        failure.why = limits.error();
        return nullptr;
    }
    follow_log_settings(place.directory, *limits);
    const int deny_errno = limits->denies_uncounted() ? limits->deny_errno() : 0;
    const auto account = Account::open(place, std::move(*limits));
    if (account) return *account;
    failure = {account.error(), is_read_only(data_path(ledger_path(place.here))), deny_errno};
    return nullptr;
}

// False on failure.
bool join(const std::string& directory, Accounts& accounts, Failure& failure) {
    const auto place = find_place(directory);
    if (!place) {
        failure = {place.error(), true};
        return false;
    }
    warn_once(place->note);
    auto& open = state().open;
    auto shared = std::find_if(open.begin(), open.end(),
                               [&](const Shared& entry) { return entry.account->is_at(*place); });
    if (shared == open.end()) {
        auto* account = open_account(*place, failure);
        if (!account) return false;
        if (says(LogLevel::info)) state().news.push_back(activity_line(*account, place->rule));
        shared = open.insert(open.end(), {account, 0});
    }
    ++shared->contexts;
    accounts.account[accounts.count++] = shared->account;
    return true;
}

[[gnu::noinline]] bool join_second(const QuotaDirectory& directory, Accounts& accounts, Failure& failure) {
    Failure second;
    if (join(directory.second, accounts, second)) return true;
    // A program that sees the first place is told of that one, unless the other says "deny".
    if (second.deny_errno != 0 || access(directory.path.c_str(), F_OK) != 0) failure = std::move(second);
    return false;
}

void join_where_possible(const QuotaDirectory& directory, Accounts& accounts) {
    Failure failure;
    if (join(directory.path, accounts, failure)) return;
    const bool elsewhere = failure.out_of_reach && directory.second && access(directory.second, F_OK) == 0;
    if (!elsewhere || !join_second(directory, accounts, failure)) report(failure, accounts);
}

}  // namespace

Accounts join_accounts(const std::vector<QuotaDirectory>& directories) {
    auto& shared = state();
    std::unique_lock lock(shared.mutex);
    if (shared.process != this_process()) {
        shared.process = this_process();
        shared.open.clear();
    }
    Accounts accounts;
    for (const auto& directory : directories) join_where_possible(directory, accounts);
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
