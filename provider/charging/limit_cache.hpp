// The limits of one account for one device or port, resolved from the policy's rows and the environment, so that a
// charge reads a few words. The first charge after a change of limits resolves them again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "shm/ledger/ledger.hpp"
#include "shm/policy/policy_segment.hpp"

namespace rdmaquota::provider {

class LimitCache {
public:
    // The limits as of now, one entry per amount; `policy` is the account's current one. Thread-safe; waits for nobody
    // and allocates nothing.
    void read(const PolicySegment& policy, std::string_view device, const Amounts& amounts, Limits* limits) noexcept {
        const bool fresh = policy_.load() == &policy && generation_.load() == policy.generation();
        if (!fresh && !refresh(policy, device)) return resolve(policy, device, amounts, limits);
        for (std::size_t i = 0; i < amounts.count; ++i) cells_[index(amounts.resource[i])].read(limits[i]);
    }

    // Whether the policy or the environment names this device or port.
    static bool named(const PolicySegment& policy, std::string_view device) noexcept;

private:
    struct Cell {
        std::atomic<std::uint64_t> process;
        std::atomic<std::uint64_t> process_total;
        std::atomic<std::uint64_t> tenant;
        std::atomic<std::uint64_t> tenant_total;

        void read(Limits& limits) const noexcept;
        void write(const Limits& limits) noexcept;
    };

    // False while another thread is doing so.
    bool refresh(const PolicySegment& policy, std::string_view device) noexcept;
    static void resolve(const PolicySegment& policy, std::string_view device, const Amounts& amounts,
                        Limits* limits) noexcept;

    std::atomic<const PolicySegment*> policy_{nullptr};  // from which the cells were resolved
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<bool> refreshing_{false};
    Cell cells_[resource_count] = {};
};

inline void LimitCache::Cell::read(Limits& limits) const noexcept {
    limits.process = process.load(std::memory_order_relaxed);
    limits.process_total = process_total.load(std::memory_order_relaxed);
    limits.tenant = tenant.load(std::memory_order_relaxed);
    limits.tenant_total = tenant_total.load(std::memory_order_relaxed);
}

}  // namespace rdmaquota::provider
