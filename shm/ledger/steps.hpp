// The steps of a charge that finds room, and of an uncharge, in line: the provider compiles them into each verb that it
// wraps, where the resources are constants. Failpoints and functions have the names of the model's steps in test/model.
#pragma once

#include <algorithm>
#include <ctime>

#include "shm/atomic.hpp"
#include "shm/failpoint.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

inline std::uint64_t monotonic_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Lets another process's proof go first; in charge.cpp.
void hold_back(std::uint64_t& pause) noexcept;

// Marks an operation of the owner with this ops word as in flight: the slot is not at rest.
class InFlight {
public:
    InFlight(LedgerData& data, std::uint64_t& ops) noexcept : ops_(ops) {
        if (load(data.header.pause) != 0) [[unlikely]]
            hold_back(data.header.pause);
        add(ops_, ops_begin);
        failpoint("begin");
    }
    ~InFlight() {
        add(ops_, ops_end);
        failpoint("end");
    }
    InFlight(const InFlight&) = delete;

private:
    std::uint64_t& ops_;
};

constexpr std::uint64_t amount_of(std::uint64_t gate) noexcept { return gate & gate_amount_mask; }

// Usage and amounts are far below 2^64, so no sum exceeds `unlimited`.
constexpr bool exceeds(std::uint64_t used, std::uint64_t amount, std::uint64_t limit) noexcept {
    return used + amount > limit;
}

// A cell holds 52 bits whatever the policy says.
constexpr std::uint64_t capped(std::uint64_t limit) noexcept { return std::min(limit, max_amount); }

// `limit` has the members of Limits, which may be atomics; each is read when it is needed.
//
// raise_gate, raise_slot, then the sums, which no compare-and-swap guards: each charger raises before
// it adds up, so of two that race the later one sees both. False: nothing is raised, and `met` is the limit that was
// met.
template <class AnyLimits>
[[gnu::always_inline]] inline bool Ledger::raise(std::uint32_t slot, std::uint32_t device, const Cells& cells,
                                                 Resource resource, std::uint64_t amount, const AnyLimits& limit,
                                                 FullLimit& met) noexcept {
    const auto r = index(resource);
    auto& gate = cells.gates[r];
    const auto bound = capped(limit.tenant);
    auto word = load(gate);
    do {
        if (exceeds(amount_of(word), amount, bound)) [[unlikely]] {
            met = {Scope::tenant, false};
            return false;
        }
    } while (!compare_exchange(gate, word, word + amount));
    failpoint("raise_gate");
    const auto used = add(cells.usage[r], amount);
    failpoint("raise_slot");
    const bool sums = (limit.process_total & limit.tenant_total) != unlimited;
    if (!exceeds(used, amount, limit.process) && !sums) [[likely]]
        return true;
    const Limits all{limit.process, limit.process_total, limit.tenant, limit.tenant_total};
    return fits_sums(slot, device, resource, amount, all, used, met);
}

// Peaks are of what was created: they are written when it goes, and until then the gate shows it (Ledger::peak).
[[gnu::always_inline]] inline void Ledger::note_peak(const Cells& cells, Resource resource) noexcept {
    raise_to(cells.peaks[index(resource)], amount_of(load(cells.gates[index(resource)])));
}

// lower_slot, then lower_gate: a death between the two leaves the gate too high, never too low. A slot never goes below
// 0, even when an object is uncharged twice, by a forked child and its parent.
[[gnu::always_inline]] inline void Ledger::lower(const Cells& cells, Resource resource, std::uint64_t amount) noexcept {
    auto& own = cells.usage[index(resource)];
    auto used = load(own);
    while (!compare_exchange(own, used, used - std::min(used, amount))) {
    }
    failpoint("lower_slot");
    subtract(cells.gates[index(resource)], std::min(used, amount));
    failpoint("lower_gate");
}

// How much of a resource that is known at compile time; an amount of 0 is not charged.
template <Resource of>
struct Part {
    static constexpr Resource resource = of;
    std::uint64_t amount;
};

// What is raised before a limit is met makes others, for the time of a roll-back, see less room than there is. They then
// go to their proof, which waits for the roll-back and looks by loads only; so do we, after the first attempt. To look
// before that one too would cost every charge as much as a limit more.
template <class LimitsOf, class... Parts>
[[gnu::always_inline]] inline bool Ledger::charge_parts(const Owner& owner, std::uint32_t device,
                                                        const LimitsOf& limits_of, const Parts&... parts) noexcept {
    if constexpr (sizeof...(parts) == 0) return true;
    const auto slot = owner.slot();
    const auto words = cells(owner, device);
    const InFlight in_flight(*data_, *owner.ops_);
    FullLimit met;
    std::size_t raised = 0;
    [[maybe_unused]] const auto raise_part = [&](const auto& part) __attribute__((always_inline)) {
        if (part.amount != 0 && !raise(slot, device, words, part.resource, part.amount, limits_of(part.resource), met))
            return false;
        ++raised;
        return true;
    };
    if ((raise_part(parts) && ...)) [[likely]]
        return true;
    [[maybe_unused]] const auto lower_part = [&](const auto& part) {
        if (raised == 0) return;
        --raised;
        if (part.amount != 0) lower(words, part.resource, part.amount);
    };
    (lower_part(parts), ...);
    return false;
}

template <class... Parts>
[[gnu::always_inline]] inline void Ledger::uncharge_parts(const Owner& owner, std::uint32_t device,
                                                          const Parts&... parts) noexcept {
    const auto words = cells(owner, device);
    [[maybe_unused]] const auto note_part = [&](const auto& part) __attribute__((always_inline)) {
        if (part.amount != 0) note_peak(words, part.resource);
    };
    (note_part(parts), ...);
    give_back_parts(owner, device, parts...);
}

template <class... Parts>
[[gnu::always_inline]] inline void Ledger::give_back_parts(const Owner& owner, std::uint32_t device,
                                                           const Parts&... parts) noexcept {
    if constexpr (sizeof...(parts) == 0) return;
    const auto words = cells(owner, device);
    const InFlight in_flight(*data_, *owner.ops_);
    [[maybe_unused]] const auto lower_part = [&](const auto& part) __attribute__((always_inline)) {
        if (part.amount != 0) lower(words, part.resource, part.amount);
    };
    (lower_part(parts), ...);
}

}  // namespace rdmaquota
