#include "tools/rdmaquotad/node/figures.hpp"

#include <algorithm>
#include <utility>

#include "tools/common/devices.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

std::uint64_t Figures::usage(const std::string& device, Resource resource) const noexcept {
    for (const auto& on : devices)
        if (on.device == device) return on.usage[index(resource)];
    return 0;
}

Figures figures_of(const LedgerCopy& ledger) {
    Figures figures;
    for (auto& [number, device] : devices_of(ledger)) {
        auto& on = figures.devices.emplace_back(DeviceFigures{std::move(device)});
        for (const auto& row : resource_table) {
            on.usage[index(row.id)] = ledger.tenant_usage(number, row.id);
            on.peak[index(row.id)] = ledger.peak(number, row.id);
        }
        on.delays = delays_of(ledger, number);
    }
    figures.processes = ledger.owners().size();
    return figures;
}

std::vector<SlotUse> slot_uses(const LedgerCopy& ledger, const std::set<std::string>& devices) {
    auto known = devices_of(ledger);
    std::erase_if(known, [&](const auto& entry) { return !devices.contains(entry.second); });
    std::vector<SlotUse> slots;
    std::size_t uses = 0;
    for (auto& owner : ledger.owners()) {
        auto& slot = slots.emplace_back(SlotUse{owner.slot, std::move(owner.identity), {}});
        for (const auto& [number, device] : known) {
            if (uses == most_uses) break;
            ResourceCounts used{};
            for (const auto& row : resource_table) used[index(row.id)] = ledger.usage(slot.slot, number, row.id);
            if (used == ResourceCounts{}) continue;
            slot.devices.push_back({device, used});
            ++uses;
        }
    }
    return slots;
}

}  // namespace rdmaquota
