// What a process is charged to in one tenant: its limits, its ledger, and a slot there.
#pragma once

#include <atomic>
#include <string>

#include "policy/result.hpp"
#include "provider/charging/place.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota::provider {

class Account {
public:
    // Maps the ledger of a place and takes a slot. Makes a ledger that is missing where this user may.
    static Result<Account*> open(const Place& place, LimitsSegment limits);

    Account(const Account&) = delete;
    ~Account() { delete limits_.load(); }

    Ledger& ledger() noexcept { return ledger_; }
    const Ledger& ledger() const noexcept { return ledger_; }
    const Owner& owner() const noexcept { return owner_; }
    const std::string& directory() const noexcept { return directory_; }  // the quota directory
    const std::string& here() const noexcept { return here_; }            // the tenant's part of it
    const std::string& tenant() const noexcept { return tenant_; }        // as it is shown

    // Whether a device that is opened at this place now is charged here: its ledger is still the one in place.
    bool is_at(const Place& place) const noexcept {
        return here_ == place.here && !ledger_.lost() && ledger_.in_place();
    }

    // The current limits. Maps the new file when the old one has been superseded. The reference stays valid as long as
    // the account.
    const LimitsSegment& policy() {
        const auto* current = limits_.load();
        return current->superseded() ? reopen_limits(current) : *current;
    }

    // Uncharges what is still in use, and frees the slot.
    void retire() noexcept { ledger_.retire(owner_); }

    // Call it when the ledger's file was cut short while in use. Says so once; false when the policy says
    // on_unavailable = "deny".
    bool admits_uncounted();

private:
    Account(const Place& place, LimitsSegment limits, Ledger ledger, Owner owner);
    const LimitsSegment& reopen_limits(const LimitsSegment* current);

    std::string directory_, here_, tenant_;
    std::atomic<const LimitsSegment*> limits_;
    Ledger ledger_;
    Owner owner_;
    std::atomic<bool> said_lost_ = false;
};

}  // namespace rdmaquota::provider
