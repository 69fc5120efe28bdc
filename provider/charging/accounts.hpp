// The accounts of this process, shared by all its contexts.
//
// A context is charged to up to two: the node's (system_directory) and, when RDMAQUOTA_DIR names another directory, that
// one's as well. Both are charged, so an environment variable can tighten but never loosen. Which tenant it is in each is
// decided when the device is opened (place.hpp); so a process that changed its user or its cgroup meanwhile has
// accounts with several tenants. A forked child gets accounts of its own for the contexts that it opens; contexts that
// it inherited stay with its parent's accounts, as their kernel objects do.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "provider/charging/account.hpp"
#include "provider/host/environment.hpp"

namespace rdmaquota::provider {

struct Accounts {
    static constexpr std::size_t capacity = 2;
    std::array<Account*, capacity> account{};
    std::size_t count = 0;
    bool denied = false;  // one cannot be used, and its policy says on_unavailable = "deny"
    int deny_errno = 0;   // of that policy
};

// Accounts for a new context; call `leave_accounts` when it closes. When the last context of an account closes, its
// owner slot is freed. Says once why an account cannot be used. Where this process's mounts hide a quota directory, or
// show its ledger read-only, the second place of the directory counts. Thread-safe; throws only std::bad_alloc.
Accounts join_accounts(const std::vector<QuotaDirectory>& directories = quota_directories());
void leave_accounts(const Accounts& accounts) noexcept;

// Taken around fork, so that a child never finds it locked by a thread that it does not have
// (provider/adoption/adopt.cpp).
std::mutex& accounts_mutex() noexcept;

}  // namespace rdmaquota::provider
