// The limits of one account for one device or port, resolved from the policy's rows and the environment, so that a
// charge reads a few words. They hold as long as one word, the policy's generation, is what it was: it changes with the
// limits, when the policy is replaced and when its file is cut short. A charge reads its View first, then the limits,
// raises what it charges, and only then asks whether the view still holds; so whoever lowers a limit, bumps the
// generation and reads usage afterwards has seen all that was charged by the old limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "provider/charging/device_report.hpp"
#include "provider/host/process.hpp"
#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/ledger/pace.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota::provider {

struct LimitRows;

class LimitCache {
public:
    // Thread-safe; waits for nobody and allocates nothing, like all here.
    struct View {
        const std::uint64_t* word;
        std::uint64_t generation;
        bool holds() const noexcept { return rdmaquota::load(*word) == generation; }
    };
    // False while nothing is known, and while the policy does not count or is no longer the one in place.
    bool view(View& view) const noexcept {
        view.word = word_.load(std::memory_order_acquire);
        view.generation = generation_.load(std::memory_order_acquire);
        return view.generation != not_known;
    }
    // As Limits, to be read while they change.
    struct Cell {
        std::atomic<std::uint64_t> process;
        std::atomic<std::uint64_t> process_total;
        std::atomic<std::uint64_t> tenant;
        std::atomic<std::uint64_t> tenant_total;
    };
    // `tenant` is the soft limit where there is one that is lower: a charge that fits below it needs to know no more.
    const Cell& cell(Resource resource) const noexcept { return cells_[index(resource)]; }

    // Whether a rate holds here, or may: at the beginning none is known.
    bool has_rates() const noexcept { return held_rates() != 0; }
    // For how long a rate delays a call; 0 where it delays none, in audit mode.
    std::uint64_t longest_delay_ns() const noexcept { return longest_delay_ns_.load(std::memory_order_relaxed); }
    // A bit for each bound of each rate that holds, those of the first rate lowest.
    std::uint32_t held_rates() const noexcept { return held_rates_.load(std::memory_order_relaxed); }
    // The paces of a rate, in the order of Limits. They may be of two generations while they change.
    static constexpr std::size_t bounds = 4;
    struct RateCell {
        std::atomic<std::uint64_t> limit[bounds], unit[bounds], burst_ns[bounds];
    };
    Pace pace(Resource rate, std::size_t bound) const noexcept {
        const auto& of = rates_[rate_index(rate)];
        return {of.unit[bound].load(std::memory_order_relaxed), of.burst_ns[bound].load(std::memory_order_relaxed)};
    }
    std::uint64_t rate_limit(Resource rate, std::size_t bound) const noexcept { return rates_[rate_index(rate)].limit[bound]; }
    // Reads the limits anew where they are not those of `policy` as it is now. False while another thread is doing so.
    bool renew(const LimitsSegment& policy, DeviceKey device, DeviceReport& report) noexcept;

    // The limits as of now, without soft ones, one entry per amount; `policy` is the account's current one.
    void read(const LimitsSegment& policy, DeviceKey device, DeviceReport& report, const Amounts& amounts,
              Limits* limits) noexcept;

    void forget() noexcept {
        generation_ = not_known;
        held_rates_ = not_read;
    }

    // Whether the policy or the environment names this device or port.
    static bool named(const LimitsSegment& policy, DeviceKey device) noexcept;

private:
    // False while another thread is doing so.
    bool refresh(const LimitsSegment& policy, DeviceKey device, DeviceReport& report) noexcept;

    std::uint32_t read_rates(const LimitRows& process, const LimitRows& tenant) noexcept;

    static constexpr std::uint64_t not_known = LimitsSegment::lost_generation;
    std::atomic<const std::uint64_t*> word_{&not_known};
    std::atomic<std::uint64_t> generation_{not_known};
    // The process that is refreshing: in a forked child no thread goes on with what a thread of its parent had begun.
    std::atomic<ProcessId> refreshing_{};
    Cell cells_[resource_count] = {};
    RateCell rates_[rate_count] = {};
    static constexpr std::uint32_t not_read = (1U << rate_count * bounds) - 1;
    std::atomic<std::uint32_t> held_rates_ = not_read;
    std::atomic<std::uint64_t> longest_delay_ns_ = 0;
    std::atomic<std::uint64_t> hard_[resource_count] = {};  // of the tenant, without soft limits
};

}  // namespace rdmaquota::provider
