// Charges of amounts that are known at run time only, and the proof of a denial. Failpoints and functions have the
// names of the model's steps in test/model.
#include <algorithm>
#include <memory>
#include <new>

#include <sched.h>

#include "shm/atomic.hpp"
#include "shm/failpoint.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/ledger/steps.hpp"

namespace rdmaquota {
namespace {

// How often a process that begins an operation yields to another's proof, at most.
constexpr int patience = 64;

std::uint64_t limit_of(const Limits& limits, FullLimit full) noexcept {
    if (full.scope == Scope::process) return full.total ? limits.process_total : limits.process;
    return full.total ? limits.tenant_total : capped(limits.tenant);
}

Denial denial_of(const Amounts& amounts, const Limits* limits, std::size_t i, FullLimit full) noexcept {
    return {amounts.resource[i], full.scope, full.total, 0, limit_of(limits[i], full), amounts.amount[i], false};
}

}  // namespace

// Lets a proof go first. Clears a request that outlives our patience: its prover is dead or stopped.
void hold_back(std::uint64_t& pause) noexcept {
    auto request = load(pause);
    for (int i = 0; i < patience && request != 0; ++i) {
        sched_yield();
        if (const auto now = load(pause); now != request) return;
    }
    compare_exchange(pause, request, std::uint64_t{0});
    failpoint("hold_back");
}

bool Ledger::in_sums(std::uint32_t device) const noexcept { return (load(data_->devices[device].key) & 1) == 0; }

std::uint64_t Ledger::gate_total(Resource resource) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < devices_used(); ++i)
        if (in_sums(i)) sum += amount_of(load(data_->gates[i][index(resource)]));
    return sum;
}

std::uint64_t Ledger::slot_total(std::uint32_t slot, Resource resource) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < devices_used(); ++i)
        if (in_sums(i)) sum += load(data_->usage[i][slot][index(resource)]);
    return sum;
}

// The limit that the charge would exceed, by loads only; nullopt when it fits.
std::optional<FullLimit> Ledger::full_limit(std::uint32_t slot, std::uint32_t device, Resource resource,
                                            std::uint64_t amount, const Limits& limit) const noexcept {
    const auto r = index(resource);
    if (exceeds(load(data_->usage[device][slot][r]), amount, limit.process))
        return FullLimit{Scope::process, false};
    if (exceeds(amount_of(load(data_->gates[device][r])), amount, capped(limit.tenant)))
        return FullLimit{Scope::tenant, false};
    return full_total(slot, resource, amount, limit, 0);
}

// The same for the sums over devices, in which `already` of the amount is counted by now.
std::optional<FullLimit> Ledger::full_total(std::uint32_t slot, Resource resource, std::uint64_t amount,
                                            const Limits& limit, std::uint64_t already) const noexcept {
    const auto full = [&](std::uint64_t used, std::uint64_t bound) {
        return exceeds(used - std::min(used, already), amount, bound);
    };
    if (limit.process_total != unlimited && full(slot_total(slot, resource), limit.process_total))
        return FullLimit{Scope::process, true};
    if (limit.tenant_total != unlimited && full(gate_total(resource), limit.tenant_total))
        return FullLimit{Scope::tenant, true};
    return std::nullopt;
}

// The rest of `raise`: the process's own limit or a sum over devices holds. False: what was raised is lowered again.
bool Ledger::fits_sums(std::uint32_t slot, std::uint32_t device, Resource resource, std::uint64_t amount,
                       const Limits& limit, std::uint64_t used, FullLimit& met) noexcept {
    const auto full = exceeds(used, amount, limit.process) ? std::optional(FullLimit{Scope::process, false})
                                                           : full_total(slot, resource, amount, limit, amount);
    if (!full) return true;
    met = *full;
    lower(cells(slot, device), resource, amount);
    return false;
}

// All or nothing; fills in the denial when nothing.
bool Ledger::try_charge(std::uint32_t slot, std::uint32_t device, const Amounts& amounts, const Limits* limits,
                        Denial& denial) noexcept {
    const auto words = cells(slot, device);
    const InFlight in_flight(*data_, data_->slots[slot].ops);
    for (std::size_t i = 0; i < amounts.count; ++i) {
        FullLimit met{};
        if (raise(slot, device, words, amounts.resource[i], amounts.amount[i], limits[i], met)) [[likely]]
            continue;
        denial = denial_of(amounts, limits, i, met);
        while (i-- > 0) lower(words, amounts.resource[i], amounts.amount[i]);
        return false;
    }
    return true;
}

// Checks with loads first, so that a doomed charge disturbs no one.
bool Ledger::retry(std::uint32_t slot, std::uint32_t device, const Amounts& amounts, const Limits* limits,
                   Denial& denial) noexcept {
    for (std::size_t i = 0; i < amounts.count; ++i) {
        const auto full = full_limit(slot, device, amounts.resource[i], amounts.amount[i], limits[i]);
        if (!full) continue;
        denial = denial_of(amounts, limits, i, *full);
        return false;
    }
    return try_charge(slot, device, amounts, limits, denial);
}

// Tries until the charge fits after all, or a quiescent view shows that it does not.
std::optional<Denial> Ledger::prove(std::uint32_t slot, std::uint32_t device, const Amounts& amounts,
                                    const Limits* limits, Denial denial) noexcept {
    const auto start = monotonic_ns();
    for (;;) {
        denial.proved =
            denial.scope == Scope::process ? own_usage_proves(slot, device, denial) : proves(device, denial);
        if (denial.proved || !in_place()) return denial;
        if (retry(slot, device, amounts, limits, denial)) return std::nullopt;
        if (monotonic_ns() - start > proof_wait_ns) return denial;
        sched_yield();
    }
}

// True when a view of all slots at rest is full and all its owners were alive. Otherwise gates are corrected, and the dead
// that were in the way are reaped: those that hold what is wanted, or that died in an operation.
bool Ledger::proves(std::uint32_t device, Denial& denial) noexcept {
    const std::unique_ptr<Snapshot> snapshot(new (std::nothrow) Snapshot);  // 2 KiB, and the host program's stack may have 16
    if (!snapshot) return false;
    if (!observe_among_others(denial.resource, *snapshot)) return reap(proof_wait_ns), false;
    denial.used = usage_behind(device, denial, *snapshot);
    return exceeds(denial.used, denial.requested, denial.limit) && all_alive(*snapshot);
}

// The same for limits of one process; its slot is at rest when none of its threads has an operation in flight.
bool Ledger::own_usage_proves(std::uint32_t slot, std::uint32_t device, Denial& denial) const noexcept {
    const auto before = load(data_->slots[slot].ops);
    denial.used = denial.total ? slot_total(slot, denial.resource)
                               : load(data_->usage[device][slot][index(denial.resource)]);
    const bool at_rest = (before & ops_in_flight_mask) == 0 && load(data_->slots[slot].ops) == before;
    return at_rest && exceeds(denial.used, denial.requested, denial.limit);
}

std::uint64_t Ledger::usage_behind(std::uint32_t device, const Denial& denial, const Snapshot& snapshot) noexcept {
    if (!denial.total) {
        correct(device, denial.resource, snapshot);
        return snapshot.used[device];
    }
    std::uint64_t sum = 0;
    for (std::uint32_t d = 0; d < devices_used(); ++d) {
        correct(d, denial.resource, snapshot);
        if (in_sums(d)) sum += snapshot.used[d];
    }
    return sum;
}

void Ledger::uncharge(const Owner& owner, std::uint32_t device, const Amounts& amounts) noexcept {
    const auto words = cells(owner, device);
    for (std::size_t i = 0; i < amounts.count; ++i) note_peak(words, amounts.resource[i]);
    give_back(owner, device, amounts);
}

void Ledger::give_back(const Owner& owner, std::uint32_t device, const Amounts& amounts) noexcept {
    const auto words = cells(owner, device);
    const InFlight in_flight(*data_, *owner.ops_);
    for (std::size_t i = 0; i < amounts.count; ++i) lower(words, amounts.resource[i], amounts.amount[i]);
}

}  // namespace rdmaquota
