#include "provider/charging/account.hpp"

#include <utility>

#include <unistd.h>

#include <fmt/core.h>

#include "provider/host/cancellation.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log_target.hpp"
#include "shm/mapping.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {

Result<Account*> Account::open(const Place& place, LimitsSegment limits) {
    const auto path = ledger_path(place.here);
    auto ledger = Ledger::open(path);
    // Who may change the directory, root as a rule, makes what is missing. Who else may charge is known for `default`
    // and for a directory of one's own only.
    const bool own = place.here == place.directory;
    if (!ledger && (own || place.is_default) && access(place.here.c_str(), W_OK) == 0)
        if (const auto made = Ledger::create(path, place.is_default ? LedgerAccess::everyone() : LedgerAccess{}))
            ledger = Ledger::open(path);
    if (!ledger) return Error{ledger.error()};
    const BusErrorsAllowed allowed;
    auto owner = ledger->join(identity_of_self());
    if (!owner) return Error{owner.error()};
    if (ledger->lost()) return Error{fmt::format("the ledger {} was cut short just now", path)};
    return new Account(place, std::move(limits), std::move(*ledger), std::move(*owner));
}

Account::Account(const Place& place, LimitsSegment limits, Ledger ledger, Owner owner)
    : directory_(place.directory),
      here_(place.here),
      tenant_(limits.tenant()),
      limits_(new LimitsSegment(std::move(limits))),
      ledger_(std::move(ledger)),
      owner_(std::move(owner)) {}

// A superseded segment stays mapped, since other threads may be reading it: a page for each reload.
const LimitsSegment& Account::reopen_limits(const LimitsSegment* current) {
    const NoCancellation guard;
    const KeepErrno keep;
    try {
        auto next = LimitsSegment::open(limits_path(here_));
        if (!next) return *current;
        follow_log_settings(directory_, *next);
        if (says(LogLevel::debug))
            say(LogLevel::debug, fmt::format("limits of tenant {} are new, mode {}", tenant_, name(next->mode())));
        auto* fresh = new LimitsSegment(std::move(*next));
        if (limits_.compare_exchange_strong(current, fresh)) return *fresh;
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
                "open the device again, so that new objects on it are counted; until then {}",
                ledger_.path(),
                denies ? "every object is denied (on_unavailable = deny)" : "its limits do not hold for this program"));
    } catch (...) {  // no memory: without a word
    }
    return !denies;
}

}  // namespace rdmaquota::provider
