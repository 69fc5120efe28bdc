// What a process is charged to in one quota directory: its policy, its ledger, and a slot there.
#pragma once

#include <atomic>
#include <string>

#include "policy/result.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/policy/policy_segment.hpp"

namespace rdmaquota::provider {

class Account {
public:
    // Maps the ledger of `directory` and takes a slot. Makes a ledger that is missing where this user may.
    static Result<Account*> open(const std::string& directory, PolicySegment policy);

    Account(const Account&) = delete;
    ~Account() { delete policy_.load(); }

    Ledger& ledger() noexcept { return ledger_; }
    const Ledger& ledger() const noexcept { return ledger_; }
    const Owner& owner() const noexcept { return owner_; }
    const std::string& directory() const noexcept { return directory_; }

    // The current policy. Maps the new segment when the old one has been superseded. The reference stays valid as long
    // as the account.
    const PolicySegment& policy() {
        const auto* current = policy_.load();
        return current->superseded() ? reopen_policy(current) : *current;
    }

    // Uncharges what is still in use, and frees the slot.
    void retire() noexcept { ledger_.retire(owner_); }

    // Call it when the ledger's file was cut short while in use. Says so once; false when the policy says
    // on_unavailable = "deny".
    bool admits_uncounted();

private:
    Account(std::string directory, PolicySegment policy, Ledger ledger, Owner owner);
    const PolicySegment& reopen_policy(const PolicySegment* current);

    std::string directory_;
    std::atomic<const PolicySegment*> policy_;
    Ledger ledger_;
    Owner owner_;
    std::atomic<bool> said_lost_ = false;
};

}  // namespace rdmaquota::provider
