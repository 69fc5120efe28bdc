#include "tools/rdmaquotad/bypass/group_counts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rdmaquota {
namespace {

constexpr std::uint32_t not_a_pid = 0x80000000;

std::uint64_t openings_of(const KernelUse& use) {
    return use.created[index(Resource::hca_handle)] + use.destroyed[index(Resource::hca_handle)];
}

}  // namespace

GroupReader::Keepers GroupReader::find_keepers(const Observation& observation, const std::vector<OwnerView>& owners) {
    std::map<std::uint32_t, std::uint64_t> openings;
    for (const auto& use : observation.uses) openings[use.pid] += openings_of(use);
    std::vector<std::uint32_t> slots;
    for (const auto& owner : owners) slots.push_back(owner.slot);
    holders_.follow(observation.ledger_path, observation.ledger.inode());
    return holders_.find(openings, slots, observation.ledger.claims());
}

// Those that have objects, but neither a slot nor memory.
void GroupReader::find_ending(const Observation& observation, const Keepers& keepers) {
    std::set<std::uint32_t> with_slot;
    for (const auto& [slot, pids] : keepers) with_slot.insert(pids.begin(), pids.end());
    const auto before = std::exchange(ending_, {});
    for (const auto& use : observation.uses) {
        if (with_slot.contains(use.pid) || use.live == ResourceCounts{}) continue;
        if (!is_ending(use.pid)) continue;
        const auto known = before.find(use.pid);
        ending_[use.pid] = known == before.end() ? observation.at : known->second;
    }
}

std::map<ProcessDevice, GroupCounts> GroupReader::read(const Observation& observation) {
    const auto owners = observation.ledger.owners();
    auto keepers = find_keepers(observation, owners);
    find_ending(observation, keepers);
    for (const auto& owner : owners)
        if (ending_.contains(owner.identity.pid)) keepers[owner.slot].push_back(owner.identity.pid);
    ProcessGroups groups;
    for (const auto& use : observation.uses) groups.join(use.pid, use.opener);
    std::set<std::uint32_t> with_slot;
    for (const auto& [slot, pids] : keepers)
        for (const auto pid : pids) {
            groups.join(pid, pids.front());
            with_slot.insert(pid);
        }
    Counts counts;
    for (const auto& use : observation.uses)
        if (const bool has_slot = with_slot.contains(use.pid); has_slot || observation.everyone)
            add_kernel(counts[{groups.of(use.pid), use.device}], use, has_slot, observation.at);
    processes_.keep_only(groups.pids());
    std::size_t unknown = 0;
    for (const auto& owner : owners) {
        const auto found = keepers.find(owner.slot);
        const auto group = found == keepers.end() ? not_a_pid | owner.slot : groups.of(found->second.front());
        add_slot(counts, group, owner, observation, unknown);
    }
    return counts;
}

void GroupReader::add_kernel(GroupCounts& counts, const KernelUse& use, bool has_slot,
                             std::chrono::steady_clock::time_point now) {
    const auto& process = processes_.of(use.pid);
    const auto objects = use.live[index(Resource::hca_object)];
    if (counts.pid == 0 || std::tuple(!has_slot, objects) > std::tuple(!counts.pid_has_slot, counts.pid_objects)) {
        counts.pid = use.pid;
        counts.comm = process ? process->comm : "";
        counts.pid_objects = objects;
        counts.pid_has_slot = has_slot;
    }
    counts.has_slot |= has_slot;
    counts.oldest = std::min(counts.oldest, process ? process->start_time : 0);
    counts.partial |= use.partial;
    counts.stale |= use.stale;
    counts.driver_objects += use.driver_objects;
    counts.openings += openings_of(use);
    const auto ending = ending_.find(use.pid);
    const bool will_go = ending != ending_.end() && now - ending->second < longest_end;
    for (std::size_t r = 0; r < resource_count; ++r) {
        counts.kernel[r] += use.live[r];
        if (will_go) counts.ending[r] += use.live[r];
        counts.activity += use.created[r] + use.destroyed[r];
    }
}

// A slot's own word about its owner's age can only keep a leak of that owner from being reported.
void GroupReader::add_slot(Counts& counts, std::uint32_t group, const OwnerView& owner, const Observation& observation,
                           std::size_t& unknown) {
    for (const auto& [number, device] : observation.ledger.devices()) {
        if (!observation.devices.contains(device)) continue;
        ResourceCounts used{};
        for (const auto& row : resource_table) used[index(row.id)] = observation.ledger.usage(owner.slot, number, row.id);
        if (used == ResourceCounts{}) continue;
        auto found = counts.find({group, device});
        if (found == counts.end()) {
            if (++unknown > most_unknown) return;
            found = counts.try_emplace({group, device}).first;
            found->second.pid = owner.identity.pid;
            found->second.comm = owner.identity.comm;
        }
        found->second.oldest = std::min(found->second.oldest, owner.identity.start_time);
        for (std::size_t r = 0; r < resource_count; ++r) found->second.ledger[r] += used[r];
    }
}

}  // namespace rdmaquota
