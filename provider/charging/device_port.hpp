// A device, or one of its ports ("mlx5_0/1"), in the accounts of this process: its index in each ledger and its limits
// in each policy.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "provider/charging/accounts.hpp"
#include "provider/charging/limit_cache.hpp"

namespace rdmaquota::provider {

class DevicePort {
public:
    // Enters it in the ledgers; `identity` as in Ledger::device_index. Warns where there is no room. Throws only std::bad_alloc.
    // `report` is the device's, and outlives this.
    DevicePort(std::string name, std::string identity, const Accounts& accounts, DeviceReport& report);
    DevicePort(const DevicePort&) = delete;

    const std::string& name() const noexcept { return name_; }
    const std::string& identity() const noexcept { return identity_; }
    DeviceKey key() const noexcept { return {name_, uverbs_}; }
    std::uint32_t index(std::size_t i) const noexcept { return index_[i]; }

    // Whether the ledger of account `i` has room for it. deny_errno() is 0 unless one has none and its policy says
    // on_unavailable = "deny": then every object here fails with that errno.
    bool usable(std::size_t i) const noexcept { return usable_[i]; }
    int deny_errno() const noexcept { return deny_errno_; }

    const LimitCache& limit_cache(std::size_t i) const noexcept { return limits_[i]; }
    // The limits of account `i`, whose policy is `policy`; one entry per amount.
    void limits(const LimitsSegment& policy, std::size_t i, const Amounts& amounts, Limits* limits) noexcept {
        limits_[i].read(policy, key(), report_, amounts, limits);
        note_rates();
    }

    // Whether a rate holds in some account, or may: at the beginning none is known.
    bool has_rates() const noexcept { return has_rates_.load(std::memory_order_relaxed); }
    // Whether the limits of all accounts are known and as they were read.
    bool limits_hold() const noexcept {
        LimitCache::View view;
        for (std::size_t i = 0; i < Accounts::capacity; ++i)
            if (usable_[i] && !(limits_[i].view(view) && view.holds())) return false;
        return true;
    }
    void renew_limits(const LimitsSegment& policy, std::size_t i) noexcept {
        limits_[i].renew(policy, key(), report_);
        note_rates();
    }

    // As limit_cache has it where it is less than the hard limit.
    std::uint64_t soft_limit(const LimitsSegment& policy, Resource resource) noexcept {
        const auto soft = policy.as_written(LimitPart::soft, Scope::tenant, key(), resource);
        return soft == unset ? unlimited : report_.amount(policy, soft, key(), resource);
    }
    // They are read anew at the next charge.
    void forget_limits() noexcept {
        for (auto& limits : limits_) limits.forget();
        has_rates_ = true;
    }

private:
    void note_rates() noexcept {
        bool any = false;
        for (std::size_t i = 0; i < Accounts::capacity; ++i) any = any || (usable_[i] && limits_[i].has_rates());
        has_rates_.store(any, std::memory_order_relaxed);
    }

    std::string name_, identity_;
    std::uint32_t uverbs_;
    DeviceReport& report_;
    int deny_errno_ = 0;
    std::uint32_t index_[Accounts::capacity] = {};
    bool usable_[Accounts::capacity] = {};
    std::atomic<bool> has_rates_ = true;
    LimitCache limits_[Accounts::capacity];
};

}  // namespace rdmaquota::provider
