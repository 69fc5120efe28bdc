// What this process is charged to: the policy and ledger of one quota directory.
//
// A process has up to two accounts: the node's (system_directory) and, when RDMAQUOTA_DIR names
// another one, that as well. Both are charged, so an environment variable can tighten but never
// loosen. A forked child gets accounts of its own for the contexts that it opens; contexts that it
// inherited stay with its parent's accounts, as their kernel objects do.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "policy/environment.hpp"
#include "provider/host/log.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/policy/policy_segment.hpp"

namespace rdmaquota::provider {

class Account {
public:
    Account(std::string directory, PolicySegment policy, Ledger ledger, Owner owner);

    Account(const Account&) = delete;
    ~Account() { delete policy_.load(); }

    Ledger& ledger() noexcept { return ledger_; }
    const Ledger& ledger() const noexcept { return ledger_; }
    const Owner& owner() const noexcept { return owner_; }
    const std::string& directory() const noexcept { return directory_; }

    // The current policy; opens the new segment when the old one has been superseded.
    const PolicySegment& policy() noexcept {
        const auto* current = policy_.load();
        return current->superseded() ? reopen_policy(current) : *current;
    }

    void retire() noexcept { ledger_.retire(owner_); }

    // The ledger's file was cut short while in use. Says so once; false when the policy says
    // on_unavailable = "deny".
    bool admits_uncounted() noexcept;

private:
    const PolicySegment& reopen_policy(const PolicySegment* current) noexcept;

    std::string directory_;
    std::atomic<const PolicySegment*> policy_;
    Ledger ledger_;
    Owner owner_;
    std::atomic<bool> said_lost_ = false;
};

// The accounts of this process, or why an account that should be there cannot be used.
struct Accounts {
    static constexpr std::size_t capacity = 2;
    std::array<Account*, capacity> account{};
    std::size_t count = 0;
    bool denied = false;  // one cannot be used and its policy says on_unavailable = "deny"
    int deny_errno = 0;
};

// Accounts for a new context; `leave_accounts` when it closes. When the last context of this
// process closes, its owner slots are freed. Thread-safe.
Accounts join_accounts();
void leave_accounts() noexcept;

const Tightening& environment();

// Logs as the first usable policy and the environment say.
void say(LogLevel level, std::string_view message) noexcept;

// The lock that fork must not find taken by another thread; provider/adoption/adopt.cpp registers it.
std::mutex& accounts_mutex() noexcept;

}  // namespace rdmaquota::provider
