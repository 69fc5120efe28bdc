// Listings for people and tools. Words are read one by one, so a listing proves nothing.
#include <algorithm>
#include <cstring>

#include "policy/fixed_text.hpp"
#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota {
std::vector<LedgerDevice> Ledger::devices() const {
    std::vector<LedgerDevice> result;
    for (std::uint32_t i = 0; i < devices_used(); ++i) {
        DeviceText name;
        DeviceIdentity identity;
        look(name, data_->devices[i].name);
        look(identity, data_->devices[i].identity);
        result.push_back({i, std::string(fixed_text(identity.text)), std::string(fixed_text(name.text))});
    }
    return result;
}

std::vector<SlotOwner> Ledger::last_owners() const {
    std::vector<SlotOwner> result(slots_used());
    for (std::size_t i = 0; i < result.size(); ++i) look(result[i], data_->slots[i].owner);
    return result;
}

std::vector<OwnerView> Ledger::owners() const {
    std::vector<OwnerView> result;
    const auto all = last_owners();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        if (load(data_->states[i]) != SlotState::live) continue;
        const auto& owner = all[i];
        result.push_back({i, {owner.pid, owner.uid, owner.start_time, std::string(fixed_text(owner.comm))},
                          (load(data_->slots[i].ops) & ops_in_flight_mask) != 0});
    }
    return result;
}

std::uint64_t Ledger::usage(std::uint32_t slot, std::uint32_t device, Resource resource) const noexcept {
    return slot < owner_slots && device < device_slots ? load(data_->usage[device][slot][index(resource)]) : 0;
}

std::uint64_t Ledger::room(const Owner& owner, std::uint32_t device, Resource resource,
                           const Limits& limits) const noexcept {
    std::uint64_t room = unlimited;
    const auto leave = [&room](std::uint64_t limit, std::uint64_t used) {
        if (limit != unlimited) room = std::min(room, limit - std::min(limit, used));
    };
    leave(limits.process, usage(owner.slot(), device, resource));
    leave(limits.tenant, gate(device, resource));
    leave(limits.process_total, slot_total(owner.slot(), resource));
    leave(limits.tenant_total, gate_total(resource));
    return room;
}

std::uint64_t Ledger::tenant_usage(std::uint32_t device, Resource resource) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < slots_used(); ++i)
        if (load(data_->states[i]) == SlotState::live) sum += usage(i, device, resource);
    return sum;
}

std::uint64_t Ledger::gate(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? load(data_->gates[device][index(resource)]) & gate_amount_mask : 0;
}

std::uint64_t Ledger::peak(std::uint32_t device, Resource resource) const noexcept {
    if (device >= device_slots) return 0;
    return std::max(load(data_->peaks[device][index(resource)]), gate(device, resource));
}

}  // namespace rdmaquota
