#include "tools/rdmaquotad/bypass/charges.hpp"

#include <algorithm>

namespace rdmaquota {
namespace {

// From what is held to what is wanted; what is held then.
std::uint64_t change_one(Ledger& ledger, const Owner& owner, std::uint32_t device, Resource resource,
                         std::uint64_t held, std::uint64_t wanted) {
    const Limits none;
    if (wanted > held) (void)ledger.charge(owner, device, Amounts{}.add(resource, wanted - held), &none);
    else ledger.uncharge(owner, device, Amounts{}.add(resource, held - wanted));
    return ledger.usage(owner.slot(), device, resource);
}

}  // namespace

bool Charges::holds(std::uint32_t slot) const {
    return std::any_of(held_.begin(), held_.end(),
                       [slot](const auto& entry) { return entry.second.owner.slot() == slot; });
}

void Charges::change(Ledger& ledger, Held& held, const ByDevice& amounts) {
    for (const auto& [device, wanted] : amounts) held.amounts.try_emplace(device);
    for (auto& [device, now] : held.amounts) {
        const auto number = ledger.device_index(device);
        const auto found = amounts.find(device);
        const auto wanted = found != amounts.end() ? found->second : ResourceCounts{};
        for (const auto& row : resource_table)
            if (const auto i = index(row.id); number && now[i] != wanted[i])
                now[i] = change_one(ledger, held.owner, *number, row.id, now[i], wanted[i]);
    }
}

void Charges::keep(Ledger& ledger, const Wanted& wanted) {
    for (auto entry = held_.begin(); entry != held_.end();) {
        if (wanted.contains(entry->first)) { ++entry; continue; }
        ledger.retire(entry->second.owner);
        entry = held_.erase(entry);
    }
    for (const auto& [pid, charge] : wanted) {
        auto found = held_.find(pid);
        if (found == held_.end()) {
            auto owner = ledger.claim(charge.whom);
            if (!owner) continue;
            found = held_.emplace(pid, Held{std::move(*owner), {}}).first;
        }
        change(ledger, found->second, charge.amounts);
    }
}

}  // namespace rdmaquota
