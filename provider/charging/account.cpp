#include "provider/charging/account.hpp"

#include <utility>

#include <unistd.h>

#include <fmt/core.h>

#include "provider/host/cancellation.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log_target.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {

Result<Account*> Account::open(const std::string& directory, PolicySegment policy) {
    const auto path = ledger_path(directory);
    auto ledger = Ledger::open(path);
    // Root makes what is missing; another user cannot.
    if (!ledger && access(directory.c_str(), W_OK) == 0)
        if (const auto made = Ledger::create(path, directory == system_directory ? LedgerAccess::everyone() : LedgerAccess{})) ledger = Ledger::open(path);
    if (!ledger) return Error{ledger.error()};
    auto owner = ledger->claim(identity_of_self());
    if (!owner) return Error{owner.error()};
    if (ledger->lost()) return Error{fmt::format("the ledger {} was cut short just now", path)};
    return new Account(directory, std::move(policy), std::move(*ledger), std::move(*owner));
}

Account::Account(std::string directory, PolicySegment policy, Ledger ledger, Owner owner)
    : directory_(std::move(directory)),
      policy_(new PolicySegment(std::move(policy))),
      ledger_(std::move(ledger)),
      owner_(std::move(owner)) {}

// A superseded segment stays mapped, since other threads may be reading it: 26 KiB per reload.
const PolicySegment& Account::reopen_policy(const PolicySegment* current) {
    const NoCancellation guard;
    const KeepErrno keep;
    try {
        auto next = PolicySegment::open(policy_path(directory_));
        if (!next) return *current;
        follow_log_settings(directory_, *next);
        auto* fresh = new PolicySegment(std::move(*next));
        if (policy_.compare_exchange_strong(current, fresh)) return *fresh;
        delete fresh;
    } catch (...) {  // no memory: the old limits go on holding
    }
    return *current;
}

bool Account::admits_uncounted() {
    const bool denies = policy().denies_uncounted();
    if (said_lost_.exchange(true)) return !denies;
    try {
        say(LogLevel::warning,
            fmt::format(
                "the ledger {} was cut short while in use; run 'rdmaquota reload' as root to replace it, and "
                "open the device again to have what is then made on it counted; until then {}",
                ledger_.path(),
                denies ? "every object is denied (on_unavailable = deny)" : "its limits do not hold for this program"));
    } catch (...) {  // no memory: without a word
    }
    return !denies;
}

}  // namespace rdmaquota::provider
