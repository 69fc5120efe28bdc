#include "provider/charging/account.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>

#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

// Process-wide state, made on first use and never destroyed: other threads may still run when the
// process exits.
struct State {
    std::mutex mutex;
    Accounts current;
    pid_t pid = 0;
    unsigned contexts = 0;
    bool complete = false;  // every account that should be there is
    bool said_unavailable = false;
    std::vector<std::string> warnings = environment().warnings;  // to be said when the lock is free
};

State& state() noexcept {
    static auto* const instance = new State;
    return *instance;
}

// Where the program was at first, which is what a relative RDMAQUOTA_DIR means wherever it goes later.
const std::string& starting_directory() {
    static const auto* const directory = [] {
        char here[PATH_MAX];
        return new std::string(getcwd(here, sizeof here) ? here : ".");
    }();
    return *directory;
}

std::string own_directory() {
    const char* own = secure_getenv("RDMAQUOTA_DIR");
    if (!own || !*own || *own == '/') return own ? own : "";
    return starting_directory() + '/' + own;
}

std::vector<std::string> directories() {
    std::vector<std::string> result;
    const auto own = own_directory();
    const bool has_own = !own.empty() && own != system_directory;
    // With a directory of its own, a process on a node without an installed policy needs no other.
    if (!has_own || access(system_directory, F_OK) == 0) result.emplace_back(system_directory);
    if (has_own) result.emplace_back(own);
    return result;
}

Result<Account*> open_account(const std::string& directory, PolicySegment policy) {
    const auto path = ledger_path(directory);
    auto ledger = Ledger::open(path);
    // Root makes what is missing; another user cannot.
    if (!ledger && access(directory.c_str(), W_OK) == 0)
        if (const auto made = Ledger::create(path, directory == system_directory)) ledger = Ledger::open(path);
    if (!ledger) return Error{ledger.error()};
    auto owner = ledger->claim(identity_of_self());
    if (!owner) return Error{owner.error()};
    if (ledger->lost()) return Error{fmt::format("the ledger {} was cut short just now", path)};
    return new Account(directory, std::move(policy), std::move(*ledger), std::move(*owner));
}

void say_unavailable(const std::string& why, bool denied) {
    if (std::exchange(state().said_unavailable, true)) return;
    state().warnings.push_back(fmt::format(
        "{}; until then, on devices that are opened now, {}", why,
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

// Those that are not open yet; true when all are.
bool open_accounts(Accounts& accounts) {
    bool complete = true;
    forget_lost(accounts);
    accounts.denied = false;
    for (const auto& directory : directories()) {
        if (has_account(accounts, directory)) continue;
        auto policy = PolicySegment::open(policy_path(directory));
        if (!policy) {
            say_unavailable(policy.error(), false);
            complete = false;
            continue;
        }
        const bool deny = policy->denies_uncounted();
        const int deny_errno = policy->deny_errno();
        auto account = open_account(directory, std::move(*policy));
        if (account) {
            accounts.account[accounts.count++] = *account;
            continue;
        }
        say_unavailable(account.error(), deny);
        complete = false;
        if (deny) {
            accounts.denied = true;
            accounts.deny_errno = deny_errno;
        }
    }
    return complete;
}

log::Target log_target() {
    log::Target target;
    for (const auto& directory : directories())
        if (const auto policy = PolicySegment::open(policy_path(directory))) {
            target = {policy.value().log_level(), policy.value().log_target(), policy.value().log_file()};
            break;
        }
    const auto& own = environment();
    if (own.log_level) target.level = *own.log_level;
    if (!own.log_file.empty()) {
        target.target = LogTarget::file;
        target.file = own.log_file;
    }
    return target;
}

}  // namespace

Account::Account(std::string directory, PolicySegment policy, Ledger ledger, Owner owner)
    : directory_(std::move(directory)),
      policy_(new PolicySegment(std::move(policy))),
      ledger_(std::move(ledger)),
      owner_(std::move(owner)) {}

// A superseded segment stays mapped, since other threads may be reading it: 18 KiB per reload.
const PolicySegment& Account::reopen_policy(const PolicySegment* current) noexcept {
    try {
        auto next = PolicySegment::open(policy_path(directory_));
        if (!next) return *current;
        auto* fresh = new PolicySegment(std::move(*next));
        if (policy_.compare_exchange_strong(current, fresh)) return *fresh;
        delete fresh;
    } catch (...) {  // no memory: the old limits hold on
    }
    return *current;
}

bool Account::admits_uncounted() noexcept {
    const bool denies = policy().denies_uncounted();
    if (said_lost_.exchange(true)) return !denies;
    try {
        say(LogLevel::warning,
            fmt::format("the ledger {} was cut short while in use; run 'rdmaquota reload' as root to replace it, and "
                        "start this program again to have it counted; until then {}",
                        ledger_.path(), denies ? "every object is denied (on_unavailable = deny)"
                                               : "its limits do not hold for this program"));
    } catch (...) {  // no memory: without a word
    }
    return !denies;
}

Accounts join_accounts() {
    auto& shared = state();
    std::unique_lock lock(shared.mutex);
    if (shared.pid != getpid()) {
        shared.pid = getpid();
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
    if (shared.pid != getpid() || shared.contexts == 0 || --shared.contexts > 0) return;
    for (std::size_t i = 0; i < shared.current.count; ++i) {
        shared.current.account[i]->retire();
        delete shared.current.account[i];
    }
    shared.current = {};
}

const Tightening& environment() {
    static const auto* const tightening = new Tightening(
        read_environment([](const char* name) -> const char* { return secure_getenv(name); }));
    return *tightening;
}

void say(LogLevel level, std::string_view message) noexcept {
    const int saved = errno;
    try {
        log::write(log_target(), level, message);
    } catch (...) {
    }
    errno = saved;
}

std::mutex& accounts_mutex() noexcept { return state().mutex; }

}  // namespace rdmaquota::provider
