// Charge, release and the proof of a denial. The steps carry the names that the model in
// test/model uses.
#include <algorithm>
#include <ctime>

#include <sched.h>

#include "shm/atomic.hpp"
#include "shm/ledger.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint64_t amount_of(std::uint64_t gate) noexcept { return gate & gate_amount_mask; }

// Marks an operation of this owner as in flight, so that no one takes the slot for being at rest.
class InFlight {
public:
    explicit InFlight(Slot& slot) noexcept : slot_(slot) { add(slot_.ops, ops_begin); }
    ~InFlight() { add(slot_.ops, ops_end); }
    InFlight(const InFlight&) = delete;

private:
    Slot& slot_;
};

bool exceeds(std::uint64_t used, std::uint64_t amount, std::uint64_t limit) noexcept {
    return limit != unlimited && (used > limit || amount > limit - used);
}

std::uint64_t now_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// A cell holds 52 bits whatever the policy says.
std::uint64_t capped(std::uint64_t limit) noexcept { return std::min(limit, max_amount); }

}  // namespace

std::uint64_t Ledger::gate_total(Resource resource) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < devices_used(); ++i) sum += amount_of(load(data_->gates[i][index(resource)]));
    return sum;
}

std::uint64_t Ledger::slot_total(std::uint32_t slot, Resource resource) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < devices_used(); ++i) sum += load(data_->slots[slot].usage[i][index(resource)]);
    return sum;
}

// Loads only, before anything is raised: who will be denied anyway disturbs nobody.
std::optional<Denial> Ledger::find_full(std::uint32_t slot, std::uint32_t device, const Amounts& amounts,
                                        const Limits* limits) const noexcept {
    for (std::size_t i = 0; i < amounts.count; ++i) {
        const auto resource = amounts.resource[i];
        const auto amount = amounts.amount[i];
        const auto& limit = limits[i];
        const auto denial = [&](LimitScope scope, std::uint64_t used, std::uint64_t bound) {
            return Denial{resource, scope, used, bound, amount, false};
        };
        const auto own = load(data_->slots[slot].usage[device][index(resource)]);
        if (exceeds(own, amount, limit.process)) return denial(LimitScope::process, own, limit.process);
        const auto gate = amount_of(load(data_->gates[device][index(resource)]));
        if (exceeds(gate, amount, capped(limit.tenant))) return denial(LimitScope::tenant, gate, capped(limit.tenant));
        if (limit.process_total != unlimited)
            if (const auto sum = slot_total(slot, resource); exceeds(sum, amount, limit.process_total))
                return denial(LimitScope::process_total, sum, limit.process_total);
        if (limit.tenant_total != unlimited)
            if (const auto sum = gate_total(resource); exceeds(sum, amount, limit.tenant_total))
                return denial(LimitScope::tenant_total, sum, limit.tenant_total);
    }
    return std::nullopt;
}

// raise_gate, raise_slot, then the sums over devices: each charger raises before it adds up, so of
// two that race the later one sees both.
std::optional<Denial> Ledger::raise(std::uint32_t slot, std::uint32_t device, Resource resource, std::uint64_t amount,
                                    const Limits& limit) noexcept {
    auto& gate = data_->gates[device][index(resource)];
    auto word = load(gate);
    do {
        if (exceeds(amount_of(word), amount, capped(limit.tenant)))
            return Denial{resource, LimitScope::tenant, amount_of(word), capped(limit.tenant), amount, false};
    } while (!compare_exchange(gate, word, word + amount));
    raise_to(data_->peaks[device][index(resource)], amount_of(word) + amount);

    auto& own = data_->slots[slot].usage[device][index(resource)];
    const auto before = add(own, amount);
    std::optional<Denial> denial;
    if (exceeds(before, amount, limit.process))
        denial = Denial{resource, LimitScope::process, before, limit.process, amount, false};
    if (!denial && limit.process_total != unlimited)
        if (const auto sum = slot_total(slot, resource) - amount; exceeds(sum, amount, limit.process_total))
            denial = Denial{resource, LimitScope::process_total, sum, limit.process_total, amount, false};
    if (!denial && limit.tenant_total != unlimited)
        if (const auto sum = gate_total(resource) - amount; exceeds(sum, amount, limit.tenant_total))
            denial = Denial{resource, LimitScope::tenant_total, sum, limit.tenant_total, amount, false};
    if (denial) lower(slot, device, resource, amount);
    return denial;
}

// lower_slot, then lower_gate: a death between the two leaves the gate too high, never too low. The
// slot gives no more than it has, whoever asks twice (a forked child destroying what its parent
// destroys as well).
void Ledger::lower(std::uint32_t slot, std::uint32_t device, Resource resource, std::uint64_t amount) noexcept {
    auto& own = data_->slots[slot].usage[device][index(resource)];
    auto used = load(own);
    while (!compare_exchange(own, used, used - std::min(used, amount))) {
    }
    subtract(data_->gates[device][index(resource)], std::min(used, amount));
}

std::optional<Denial> Ledger::try_charge(std::uint32_t slot, std::uint32_t device, const Amounts& amounts,
                                         const Limits* limits) noexcept {
    if (auto full = find_full(slot, device, amounts, limits)) return full;
    InFlight in_flight(data_->slots[slot]);
    for (std::size_t i = 0; i < amounts.count; ++i) {
        auto denial = raise(slot, device, amounts.resource[i], amounts.amount[i], limits[i]);
        if (!denial) continue;
        while (i-- > 0) lower(slot, device, amounts.resource[i], amounts.amount[i]);
        return denial;
    }
    return std::nullopt;
}

std::optional<Denial> Ledger::charge(const Owner& owner, std::uint32_t device, const Amounts& amounts,
                                     const Limits* limits) noexcept {
    auto denial = try_charge(owner.slot(), device, amounts, limits);
    if (!denial) return std::nullopt;

    reap();
    const auto deadline = now_ns() + proof_wait_ns;
    for (;;) {
        if (const auto used = proved_usage(owner.slot(), device, *denial)) {
            denial->used = *used;
            denial->proved = exceeds(*used, denial->requested, denial->limit);
            if (denial->proved) return denial;
        }
        denial = try_charge(owner.slot(), device, amounts, limits);
        if (!denial || now_ns() > deadline) return denial;
        sched_yield();
    }
}

// The true usage behind a denial, when all slots that count can be seen at rest. Corrects the
// gates on the way.
std::optional<std::uint64_t> Ledger::proved_usage(std::uint32_t slot, std::uint32_t device,
                                                  const Denial& denial) noexcept {
    const bool own = denial.scope == LimitScope::process || denial.scope == LimitScope::process_total;
    if (own) {
        const auto before = load(data_->slots[slot].ops);
        const auto used = denial.scope == LimitScope::process
                              ? load(data_->slots[slot].usage[device][index(denial.resource)])
                              : slot_total(slot, denial.resource);
        const bool at_rest = (before & ops_in_flight_mask) == 0 && load(data_->slots[slot].ops) == before;
        return at_rest ? std::optional(used) : std::nullopt;
    }
    Snapshot snapshot;
    if (!observe(denial.resource, snapshot)) return std::nullopt;
    if (denial.scope == LimitScope::tenant) {
        correct(device, denial.resource, snapshot);
        return snapshot.used[device];
    }
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < devices_used(); ++i) {
        correct(i, denial.resource, snapshot);
        sum += snapshot.used[i];
    }
    return sum;
}

void Ledger::release(const Owner& owner, std::uint32_t device, const Amounts& amounts) noexcept {
    InFlight in_flight(data_->slots[owner.slot()]);
    for (std::size_t i = 0; i < amounts.count; ++i)
        lower(owner.slot(), device, amounts.resource[i], amounts.amount[i]);
}

}  // namespace rdmaquota
