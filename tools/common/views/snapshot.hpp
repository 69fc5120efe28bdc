// Who uses how much of what: ledger and policy combined, as of one moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_copy.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {

// How much of a limit is used: 1 where all is. Negative without a limit, and for 0 of 0: nothing is full then.
double share_of_limit(std::uint64_t usage, std::uint64_t limit) noexcept;

struct ResourceView {
    Resource resource;
    std::uint64_t usage;
    std::uint64_t limit;                // the one in force, or `unlimited`
    std::optional<std::uint64_t> peak;  // not known for processes and for "total"
    std::uint64_t configured = unlimited;  // of tenants only: what would be in force without `reason`
    Reason reason = Reason::configured;
    std::uint64_t guarantee = 0;
    std::uint64_t soft = unlimited;
    std::uint64_t soft_since = 0;     // CLOCK_BOOTTIME, ns; 0: never, or not known
    std::uint32_t grace_s = 0;
    std::optional<std::uint64_t> kernel = {};  // the guard's count, where it has one
    std::uint64_t refused = 0;                 // creations, by the guard
    std::uint64_t earmarked = 0;               // what it asked for and is to have as others free it
    std::uint64_t written = unset;             // what is configured, as it was written: it may be a percentage

    // What counts against the limit: by the ledger or by the guard, which holds programs that the ledger does not know.
    std::uint64_t used() const noexcept { return std::max(usage, kernel.value_or(0)); }
    bool above_soft() const noexcept { return usage > soft; }
    // What is left of the grace period, in seconds, while above the soft limit.
    std::uint64_t grace_left_s() const;
    // What may still be created: by the limit, or by a soft one whose grace period is over. `unlimited` without either.
    std::uint64_t room() const;
    // What is used above the share that others left it.
    std::uint64_t debt() const noexcept { return reason == Reason::grant && usage > limit ? usage - limit : 0; }
};

struct DeviceView {
    std::string name;  // a device, or "total" where sums are limited; not yet safe to print
    std::vector<ResourceView> resources;
};

// A rate that is limited on a device, or for "total", of the tenant as a whole.
struct RateView {
    std::string device;  // not yet safe to print
    Resource rate;
    std::uint64_t limit;       // a second, in force
    std::uint64_t configured;  // without `reason`
    std::uint64_t burst;       // `unlimited`: as much as the rate allows in a second
    Reason reason = Reason::configured;
    Ledger::Delays delays = {};  // since the ledger was made, by this and by processes' limits; of "total": 0
};

// What was done on a device: by the tenant in all, or by a process since it opened the device.
struct ActivityView {
    std::string device;  // not yet safe to print
    PastActivity counts;
};

struct ProcessView {
    std::uint32_t pid;  // by its own word; by the node's after NodeProcesses::name, 0 where that is not known
    std::uint32_t uid;
    std::string comm;  // not yet safe to print
    std::vector<DeviceView> devices;
    std::vector<ActivityView> activity;  // devices with any
    std::uint32_t slot = 0;
    std::uint64_t start_time = 0;  // by its own word, in clock ticks since boot
    std::uint32_t inner_pid = 0;   // in a container: the pid that it has there
    std::string cgroup = {};       // not yet safe to print; empty where it is not known
};

struct TenantView {
    std::string name;  // as it is shown
    Mode mode;
    std::uint32_t weight;
    std::vector<DeviceView> devices;     // with what has usage, limit or peak
    std::vector<ActivityView> activity;  // devices with any
    std::vector<ProcessView> processes;  // by pid
    bool is_sum = false;                 // of the tenants below it
    std::vector<RateView> rates = {};    // those that are limited, or delayed a call
    bool is_guarded = false;             // the guard refuses what exceeds its limits
    bool is_partial = false;             // a sum: some of the tenants below it may not be read
};

// The pid, or "-" where the node's is not known.
std::string pid_text(const ProcessView& process);

// What rates delayed on the device with this number, by rate_index; `ledger` is a Ledger or a LedgerCopy.
template <class Source>
std::array<Ledger::Delays, rate_count> delays_of(const Source& ledger, std::uint32_t device) {
    std::array<Ledger::Delays, rate_count> delays{};
    for (const auto& row : rate_table) delays[rate_index(row.id)] = ledger.delays(device, row.id);
    return delays;
}

// The limits are a segment with all parts. Processes beyond 131,072 figures are left out of the whole, as only a falsified ledger has so many.
TenantView take_snapshot(const Ledger& ledger, const LimitsSegment& policy);
TenantView take_snapshot(const LedgerCopy& ledger, const LimitsSegment& policy);  // one that was read with activity

// An inner tenant or the node: its limits, and the sum of what the tenants below it use.
TenantView sum_of(const std::vector<const TenantView*>& below, const LimitsSegment& policy);

}  // namespace rdmaquota
